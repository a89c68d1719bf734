"""A node whose kubelet rejects what is bound there gets no more pods for a while."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, fake_api
from tests.fakes.extender_clock import FakeClock
from tests.samples.extender import pod_json, pod_request, reference, share_node_json

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.node_pauses import FIRST_PAUSE, MAX_PAUSE, RIGHT_AFTER, NodePauses
from gpushare_extender.cluster.watchers import WatchHealth, watch_pods, watch_share_nodes

REJECTED = (
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for gpushare.io/memory."
    " Requested: 1, Available: 0, which is unexpected"
)


class Setting:
    """An extender that follows the cluster, and a kubelet that takes or rejects what is bound to n1."""

    def __init__(self, api: FakeApi, client: KubeClient) -> None:
        self.api = api
        self.clock = FakeClock()
        self.ledger = Ledger()
        timing = BindTiming(clock=self.clock, sleep=self.sleep)
        self.pauses = NodePauses(client, self.ledger, timing)
        self.binder = Binder(client, self.ledger, self.permitted, bound=self.pauses.bound)
        self.health = WatchHealth("pods"), WatchHealth("gpusharenodes")
        self.tasks = [
            asyncio.create_task(watch_pods(client, self.ledger, self.health[0], self.pauses.gone)),
            asyncio.create_task(watch_share_nodes(client, self.ledger, self.health[1], self.pauses.reported)),
            asyncio.create_task(self.pauses.end_in_time()),
        ]

    async def permitted(self) -> int:
        """In place of holding the Lease."""
        return 1

    async def sleep(self, seconds: float) -> None:
        due = self.clock.now + seconds
        while self.clock.now < due:  # noqa: ASYNC110 - time has no events of its own
            await asyncio.sleep(0.001)

    async def bind(self, name: str) -> None:
        self.api.put(PODS, pod_json(name, units=1))
        assert await self.binder.bind(reference(name), "n1") == ""
        await self.api.wait_for("the watch", lambda: f"uid-{name}" not in self.ledger.reservations)

    async def end(self, name: str, phase: str, reason: str = "", message: str = "") -> None:
        pod = self.api.pod(name)
        self.api.put(PODS, {**pod, "status": {"phase": phase, "reason": reason, "message": message}})
        await self.api.wait_for("the pod gone", lambda: self.ledger.holder(f"uid-{name}") is None)
        while self.pauses._reads:
            await asyncio.gather(*self.pauses._reads.values(), return_exceptions=True)
            await asyncio.sleep(0)

    async def reject(self, name: str, reason: str = "UnexpectedAdmissionError") -> None:
        await self.bind(name)
        await self.end(name, "Failed", reason, REJECTED)

    def refusal(self) -> str:
        """Why n1 takes no pod; an empty text when it does."""
        return filter_nodes(self.ledger, ["n1"], uid="new", request=pod_request(1)).unresolvable.get("n1", "")

    async def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        await asyncio.sleep(0.01)


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    async with fake_api() as api, KubeClient(api.credentials()) as client:
        api.put(SHARE_NODES, share_node_json("n1"))
        setting = Setting(api, client)
        for health in setting.health:
            await asyncio.wait_for(health.until_applied(0), 30)
        yield setting
        for task in setting.tasks:
            task.cancel()
        await asyncio.gather(*setting.tasks, return_exceptions=True)


REASONS = ["UnexpectedAdmissionError", "OutOfgpushare.io/memory", "OutOfgpushare.io/slice"]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_rejected_pod_pauses_its_node(setting: Setting, reason: str) -> None:
    await setting.reject("a", reason)
    assert setting.refusal() == (
        f"node takes no pods for 5 s: its kubelet rejected one ({reason}), "
        "the gpushare plugin there may be down"
    )
    setting.api.put(PODS, pod_json("b", units=1))
    assert "takes no pods for 5 s" in await setting.binder.bind(reference("b"), "n1")
    await setting.pass_time(FIRST_PAUSE)
    assert setting.refusal() == ""


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        pytest.param("Succeeded", "", id="a Job that ends at once"),
        pytest.param("Failed", "", id="a container that fails at once"),
        pytest.param("Failed", "Evicted", id="evicted"),
    ],
)
async def test_pods_that_end_by_themselves_do_not(setting: Setting, phase: str, reason: str) -> None:
    await setting.bind("a")
    await setting.end("a", phase, reason)
    assert setting.refusal() == ""


async def test_nor_one_that_is_deleted_or_another_of_its_name(setting: Setting) -> None:
    await setting.bind("a")
    setting.api.put(PODS, {**pod_json("a", uid="next"), "status": {"phase": "Failed"}})
    setting.api.delete(PODS, "a", "default")
    assert setting.refusal() == ""


async def test_a_pod_that_ends_later_is_not_looked_at(setting: Setting) -> None:
    await setting.bind("a")
    await setting.pass_time(RIGHT_AFTER + 1)
    await setting.end("a", "Failed", "UnexpectedAdmissionError", REJECTED)
    assert setting.refusal() == ""


async def test_one_that_was_rejected_for_another_resource_does_not(setting: Setting) -> None:
    await setting.bind("a")
    message = REJECTED.replace("gpushare.io/memory", "example.com/nic")
    await setting.end("a", "Failed", "UnexpectedAdmissionError", message)
    assert setting.refusal() == ""


async def test_one_that_was_rejected_before_its_bind_was_answered_does(setting: Setting) -> None:
    """The watch may be faster than the answer to the Binding."""

    async def reject_at_once(request: web.Request) -> web.StreamResponse:
        setting.api.bind(("default", "a"), await request.json())
        await setting.end("a", "Failed", "UnexpectedAdmissionError", REJECTED)
        return web.json_response({}, status=201)

    setting.api.put(PODS, pod_json("a", units=1))
    setting.api.fail("POST", "/api/v1/namespaces/default/pods/a/binding", reject_at_once)
    assert await setting.binder.bind(reference("a"), "n1") == ""
    await setting.api.wait_for("the pause", lambda: bool(setting.refusal()))


async def test_one_that_was_rejected_before_the_plugin_reported_does_not(setting: Setting) -> None:
    async def report_meanwhile(_: web.Request) -> None:
        setting.pauses.reported("n1")

    await setting.bind("a")
    setting.api.fail("GET", "/api/v1/namespaces/default/pods/a", report_meanwhile)
    await setting.end("a", "Failed", "UnexpectedAdmissionError", REJECTED)
    assert setting.refusal() == ""


async def test_pauses_grow_while_pods_are_rejected(setting: Setting) -> None:
    lengths = []
    for number in range(6):
        await setting.reject(f"p{number}")
        begun = setting.clock.now
        while setting.refusal():
            await setting.pass_time(1.0)
        lengths.append(setting.clock.now - begun)
    assert lengths == [5, 10, 20, 40, MAX_PAUSE, MAX_PAUSE]


async def test_a_report_of_the_plugin_ends_the_pause(setting: Setting) -> None:
    await setting.reject("a")
    await setting.pass_time(FIRST_PAUSE)
    await setting.reject("b")
    assert "for 10 s" in setting.refusal()
    node = share_node_json("n1")
    node["status"]["cards"][0]["allocatedUnits"] = 1
    setting.api.put(SHARE_NODES, node)
    await setting.api.wait_for("the node open", lambda: not setting.refusal())
    await setting.reject("c")
    assert "for 5 s" in setting.refusal(), "from the start again"


async def test_what_the_plugin_did_not_write_does_not(setting: Setting) -> None:
    await setting.reject("a")
    node = share_node_json("n1")
    node["metadata"]["labels"] = {"touched": "by somebody"}
    setting.api.put(SHARE_NODES, node)
    await setting.pass_time(0.1)
    assert setting.refusal()


async def test_a_pod_that_stays_makes_pauses_short_again(setting: Setting) -> None:
    await setting.reject("a")
    await setting.pass_time(FIRST_PAUSE)
    await setting.bind("b")
    await setting.pass_time(RIGHT_AFTER + 1)
    await setting.reject("c")
    assert "for 5 s" in setting.refusal()


async def test_a_whole_burst_at_a_node_without_plugin_costs_one_read(setting: Setting) -> None:
    for number in range(10):
        await setting.bind(f"p{number}")
    for number in range(10):
        pod = setting.api.pod(f"p{number}")
        rejected = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": REJECTED}
        setting.api.put(PODS, {**pod, "status": rejected})
    await setting.api.wait_for("the pause", lambda: bool(setting.refusal()))
    assert "for 5 s" in setting.refusal()
    reads = [
        request
        for request in setting.api.seen
        if request.method == "GET" and request.path.endswith(("p0", "p1", "p2"))
    ]
    assert sum("resourceVersion" not in read.query for read in reads) == 1


async def test_a_pod_that_the_plugin_has_told_of_is_not_read(setting: Setting) -> None:
    """The kubelet gave it its units: it is hardly ever their lack that ended it."""
    await setting.bind("a")
    told = share_node_json("n1")
    holder = setting.ledger.holder("uid-a")
    assert holder is not None
    for card in told["status"]["cards"]:
        if units := holder.units_of(card["uuid"]):
            share = {"uid": "uid-a", "namespace": "default", "name": "a", "container": "main", "units": units}
            card |= {"allocatedUnits": units, "pods": [share]}
    setting.api.put(SHARE_NODES, told)
    sums = setting.ledger.node("n1")
    assert sums is not None
    await setting.api.wait_for("the report", lambda: sums.is_reported("uid-a"))
    await setting.end("a", "Failed", "UnexpectedAdmissionError", REJECTED)
    assert setting.refusal() == ""


async def test_one_that_a_list_alone_shows_rejected_does(setting: Setting) -> None:
    """The watch was broken when the kubelet rejected it."""
    await setting.bind("a")
    rejected = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": REJECTED}
    setting.api.put(PODS, {**setting.api.pod("a"), "status": rejected})
    setting.api.forget_history()
    await setting.api.wait_for("the list", lambda: setting.ledger.holder("uid-a") is None)
    await setting.pass_time(1.0)
    await setting.api.wait_for("the pause", lambda: bool(setting.refusal()))
