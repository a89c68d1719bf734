"""Pods that the kubelet knew first are looked up, as far as they still matter here."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, Answer, json_answer, passing, status
from tests.fakes.plugin_api import PluginApi, plugin_api
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Listed
from gpushare_core.kube.paths import pod_path
from gpushare_plugin.cluster import pod_watch
from gpushare_plugin.cluster.pod_watch import PodWatch, read_one
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.state import PluginState

ONE = name_of("a")
PREDECESSOR = pod_json("a", container(units=8), uid="before")
PREDECESSOR["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"


@pytest.fixture
async def api() -> AsyncIterator[PluginApi]:
    async with plugin_api() as fake:
        yield fake


async def state_after_reading(api: PluginApi) -> PluginState:
    """What is known of ``ONE`` after its spec was read."""
    state = PluginState(NODE)
    async with KubeClient(api.credentials()) as client:
        await PodWatch(state, client, ended=lambda: None).read_specs([ONE], timeout=60)
    return state


async def test_what_a_pod_asks_for_is_read(api: PluginApi) -> None:
    api.put(PODS, pod_json("a", container(units=4)))
    request = (await state_after_reading(api)).pods[ONE].request
    assert request
    assert request.total == 4


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_finished_is_not_remembered(api: PluginApi, phase: str) -> None:
    api.put(PODS, {**pod_json("a", container(units=4)), "status": {"phase": phase}})
    assert (await state_after_reading(api)).pods == {}


async def test_a_pod_of_another_node_is_not_remembered(api: PluginApi) -> None:
    api.put(PODS, pod_json("a", container(units=4), node="gpu-2"))
    assert (await state_after_reading(api)).pods == {}


async def test_a_pod_that_is_not_there_is_not_remembered(api: PluginApi) -> None:
    assert (await state_after_reading(api)).pods == {}


@dataclass(slots=True)
class HeldBack:
    """A fault: the API server answers when ``released`` is set."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Answer = passing

    async def __call__(self, request: web.Request) -> web.StreamResponse | None:
        self.asked.set()
        await self.released.wait()
        return await self.answer(request)


async def _read_twice(api: PluginApi, first: HeldBack) -> PluginState:
    """What is known after two readings, the second of which begins while the first is under way."""
    api.fail("GET", pod_path(*ONE), first)
    state = PluginState(NODE)
    async with KubeClient(api.credentials()) as client, asyncio.timeout(30), asyncio.TaskGroup() as group:
        watch = PodWatch(state, client, ended=lambda: None)
        group.create_task(watch.read_specs([ONE], timeout=60))
        await first.asked.wait()
        second = group.create_task(watch.read_specs([ONE], timeout=60))
        await asyncio.sleep(0)
        assert not second.done()
        first.released.set()
    return state


def _readings(api: PluginApi) -> int:
    return sum(request.method == "GET" and request.path == pod_path(*ONE) for request in api.seen)


async def test_a_pod_that_is_being_read_is_not_read_twice(api: PluginApi) -> None:
    """The watch and the kubelet tell of a new pod at the same moment."""
    api.put(PODS, pod_json("a", container(units=4)))
    state = await _read_twice(api, HeldBack())
    assert state.pods[ONE].request
    assert _readings(api) == 1


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(status(404), id="it was not there yet"),
        pytest.param(status(500), id="the API server had a problem"),
        pytest.param(json_answer(PREDECESSOR), id="it had the name of one that is being deleted"),
    ],
)
async def test_a_reading_under_way_that_tells_nothing_of_the_pod_is_not_trusted(
    api: PluginApi, first: Answer
) -> None:
    api.put(PODS, pod_json("a", container(units=4)))
    state = await _read_twice(api, HeldBack(answer=first))
    request = state.pods[ONE].request
    assert request
    assert request.total == 4
    assert _readings(api) == 2


async def test_a_reading_that_hangs_is_not_waited_for_long(
    api: PluginApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_watch, "UNDER_WAY_TIMEOUT", 0.05)
    api.put(PODS, pod_json("a", container(units=4)))
    hanging = HeldBack()
    api.fail("GET", pod_path(*ONE), hanging)
    state = PluginState(NODE)
    async with KubeClient(api.credentials()) as client, asyncio.timeout(30), asyncio.TaskGroup() as group:
        watch = PodWatch(state, client, ended=lambda: None)
        first = group.create_task(watch.read_specs([ONE], timeout=60))
        await hanging.asked.wait()
        await watch.read_specs([ONE], timeout=60)
        assert state.pods[ONE].request
        assert not first.done()
        hanging.released.set()


def _event(kind: str) -> Changed[Pod]:
    return Changed(kind, read_one(json.dumps(pod_json("a", container(units=4))).encode()))


@pytest.mark.parametrize("known", [False, True], ids=["the kubelet knew it first", "the watch knew it"])
@pytest.mark.parametrize("end", [_event("DELETED"), Listed(list[Pod]())], ids=["deleted", "listed anew"])
async def test_a_pod_that_ends_while_it_is_being_read_is_not_remembered(
    api: PluginApi, end: Changed[Pod] | Listed[Pod], *, known: bool
) -> None:
    """The answer is of a moment before."""
    held = HeldBack(answer=json_answer(pod_json("a", container(units=4))))
    api.fail("GET", pod_path(*ONE), held)
    state = PluginState(NODE)
    async with KubeClient(api.credentials()) as client, asyncio.timeout(30):
        watch = PodWatch(state, client, ended=lambda: None)
        if known:
            watch._handle(_event("ADDED"))
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.read_specs([ONE], timeout=60))
            await held.asked.wait()
            watch._handle(_event("ADDED"))
            watch._handle(end)
            held.released.set()
    assert state.pods == {}


def _pod_event(kind: str, *, uid: str, version: int) -> Changed[Pod]:
    pod = pod_json("a", container(units=4), uid=uid)
    pod["metadata"]["resourceVersion"] = str(version)
    return Changed(kind, read_one(json.dumps(pod).encode()))


async def test_a_reading_that_found_nothing_says_nothing_of_a_pod_that_came_since(api: PluginApi) -> None:
    """The pod was deleted and made anew while the answer was on its way."""
    held = HeldBack(answer=status(404))
    api.fail("GET", pod_path(*ONE), held)
    state = PluginState(NODE)
    async with KubeClient(api.credentials()) as client, asyncio.timeout(30):
        watch = PodWatch(state, client, ended=lambda: None)
        watch._handle(_pod_event("ADDED", uid="before", version=5))
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.read_specs([ONE], timeout=60))
            await held.asked.wait()
            watch._handle(_pod_event("DELETED", uid="before", version=6))
            watch._handle(_pod_event("ADDED", uid="after", version=7))
            held.released.set()
    assert state.pods[ONE].uid == "after"
