"""Sixteen pods of half a card at once on eight cards: two on each, every time, whoever dies in the middle."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, FakeApi, fake_api
from tests.fakes.extender_api import extender_api
from tests.fakes.extender_caller import SchedulerCaller
from tests.fakes.extender_clock import FakeClock
from tests.fakes.following_extender import permitted
from tests.samples.extender import ANNOTATION, pod_json, share_node

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.server import application

NAMES = [f"pod-{number}" for number in range(16)]
UNITS = 8
"""Half a card."""
TIMES = 100


class SmallScheduler:
    """Filters and scores one pod after the other, and binds them all at once, as kube-scheduler does."""

    def __init__(self, caller: SchedulerCaller, nodes: list[str], luck: random.Random) -> None:
        self._caller = caller
        self._nodes = nodes
        self._luck = luck
        self._binds: set[asyncio.Task[None]] = set()

    async def schedule(self, names: list[str]) -> None:
        """Returns when all binds are answered."""
        for name in names:
            await self._one(name)
        await asyncio.gather(*self._binds)

    async def kill(self) -> None:
        """Breaks off every call."""
        for bind in self._binds:
            bind.cancel()
        await asyncio.gather(*self._binds, return_exceptions=True)

    async def _one(self, name: str) -> None:
        body = {"Pod": pod_json(name, units=UNITS), "NodeNames": self._nodes}
        passing = (await self._caller.post("/gpushare/filter", body))["NodeNames"]
        if not passing:
            return
        url = self._caller.server.make_url("/gpushare/prioritize")
        async with self._caller.session.post(url, json={**body, "NodeNames": passing}) as response:
            scores = {score["Host"]: score["Score"] for score in await response.json()}
        best = [node for node in passing if scores[node] == max(scores.values())]
        self._binds.add(asyncio.create_task(self._bind(name, self._luck.choice(best))))

    async def _bind(self, name: str, node: str) -> None:
        body = {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}", "Node": node}
        await self._caller.post("/gpushare/bind", body)


@contextlib.asynccontextmanager
async def extender(api: FakeApi, *nodes: int) -> AsyncIterator[tuple[SchedulerCaller, list[str]]]:
    """A node for each of ``nodes``, with so many cards."""
    ledger = Ledger()
    share_nodes = [share_node(f"n{place}", *[2 * UNITS] * cards) for place, cards in enumerate(nodes)]
    ledger.replace_share_nodes(share_nodes)
    clock = FakeClock(0.0)
    watches = (WatchHealth("pods", clock, listed=True), WatchHealth("gpusharenodes", clock, listed=True))
    async with KubeClient(api.credentials()) as client, ClientSession() as session:
        binder = Binder(client, ledger, permitted)
        server = TestServer(application(extender_api(binder, HealthApi(watches))))
        await server.start_server(shutdown_timeout=0.001)
        yield SchedulerCaller(session, server), [node.name for node in share_nodes]
        await binder.drain(5.0)
        await server.close()


def pods_on_cards(api: FakeApi) -> Counter[str]:
    cards: Counter[str] = Counter()
    for name in NAMES:
        if text := api.pod(name)["metadata"]["annotations"].get(ANNOTATION):
            cards.update(decode_allocation(text, uid=f"uid-{name}").held().keys())
    return cards


async def until_all_are_bound(caller: SchedulerCaller, nodes: list[str], api: FakeApi) -> None:
    """What a new kube-scheduler does: it takes up every pod that has no node."""
    async with asyncio.timeout(30):
        while waiting := [name for name in NAMES if not api.pod(name)["spec"].get("nodeName")]:
            luck = random.Random(0)  # noqa: S311 - an order, no secret
            await SmallScheduler(caller, nodes, luck).schedule(waiting)


@pytest.mark.parametrize("nodes", [pytest.param((8,), id="one node"), pytest.param((4, 4), id="two nodes")])
@pytest.mark.parametrize(
    "killed", [pytest.param(False, id="quiet"), pytest.param(True, id="scheduler killed")]
)
async def test_two_pods_on_each_card_a_hundred_times(nodes: tuple[int, ...], *, killed: bool) -> None:
    for seed in range(TIMES):
        luck = random.Random(seed)  # noqa: S311 - an order, no secret
        order = luck.sample(NAMES, len(NAMES))
        async with fake_api() as api:
            for name in NAMES:
                api.put(PODS, pod_json(name, units=UNITS))
            async with extender(api, *nodes) as (caller, names):
                scheduler = SmallScheduler(caller, names, luck)
                if killed:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(luck.uniform(0.005, 0.1)):
                            await scheduler.schedule(order)
                    await scheduler.kill()
                await until_all_are_bound(caller, names, api)
            assert set(pods_on_cards(api).values()) == {2}, f"seed {seed}: {pods_on_cards(api)}"
            assert len(pods_on_cards(api)) == 8, f"seed {seed}: {pods_on_cards(api)}"
