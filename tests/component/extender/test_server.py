"""The extender as kube-scheduler, the kubelet's probes and people talk to it, over HTTP."""

import io
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, FakeApi
from tests.fakes.extender_api import extender_api
from tests.fakes.extender_caller import SchedulerCaller
from tests.fakes.extender_clock import FakeClock
from tests.fakes.following_extender import permitted
from tests.samples.extender import pod_json, pod_update, share_node

from gpushare_core.dialects.annotation_room import MAX_BYTES
from gpushare_core.kube.client import KubeClient
from gpushare_core.process.metrics import new_registry
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import DEAD_SECONDS, WatchHealth
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.metrics import ExtenderMetrics
from gpushare_extender.verbs.server import MAX_REQUEST, ExtenderApi, application
from gpushare_extender.verbs.wire import MAX_NODES


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


@pytest.fixture
async def extender(api: FakeApi, clock: FakeClock) -> AsyncIterator[ExtenderApi]:
    """Ready; n1 is empty, n2 has 2 units left on its emptiest card."""
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2")])
    ledger.set_pod(pod_update("x", node="n2", c0=14))
    ledger.set_pod(pod_update("y", node="n2", c1=15))
    watches = (WatchHealth("pods", clock, listed=True), WatchHealth("gpusharenodes", clock, listed=True))
    async with KubeClient(api.credentials()) as client:
        registry = new_registry("gpushare-extender")
        metrics = ExtenderMetrics(registry)
        binder = Binder(client, ledger, permitted, ended=metrics.bind_ended)
        yield extender_api(binder, HealthApi(watches, registry=registry), metrics=metrics)


@pytest.fixture
async def caller(extender: ExtenderApi) -> AsyncIterator[SchedulerCaller]:
    server = TestServer(application(extender))
    await server.start_server(shutdown_timeout=0.1)
    async with ClientSession() as session:
        yield SchedulerCaller(session, server)
    await server.close()


BIND = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}


class TestFilter:
    async def test_names_in_names_out(self, caller: SchedulerCaller) -> None:
        assert await caller.filter("n1", "n2", "n3") == {
            "NodeNames": ["n1"],
            "FailedNodes": {"n2": "insufficient GPU memory in one card: asked 4, largest free 2"},
            "FailedAndUnresolvableNodes": {"n3": "node(s) that share no GPU cards"},
        }

    async def test_a_pod_without_room_for_our_annotation_waits_for_no_units(
        self, caller: SchedulerCaller, extender: ExtenderApi
    ) -> None:
        full = pod_json("a", units=4, annotations={"filler": "x" * (MAX_BYTES - 100)})
        answer = await caller.post("/gpushare/filter", {"Pod": full, "NodeNames": ["n1"]})
        assert "remove annotations from the pod" in answer["FailedAndUnresolvableNodes"]["n1"]
        assert not extender.attempts.unschedulable.has_room("gpushare.io/memory", 16)
        assert (await caller.filter("n1"))["NodeNames"] == ["n1"], "once they are gone"

    async def test_nobody_passes_is_an_empty_list_not_a_missing_one(self, caller: SchedulerCaller) -> None:
        assert (await caller.filter("n2"))["NodeNames"] == []

    async def test_a_pod_that_asks_for_nothing_passes_everywhere(self, caller: SchedulerCaller) -> None:
        assert await caller.filter("n1", "n3", units=None) == {"NodeNames": ["n1", "n3"]}

    async def test_a_pod_that_comes_again_unbound_is_offered_every_node(
        self, caller: SchedulerCaller, extender: ExtenderApi
    ) -> None:
        names = [f"many-{number}" for number in range(20)]
        for name in names:
            extender.ledger.set_share_node(share_node(name))
        first = await caller.filter(*names)
        offered = first.pop("NodeNames")
        assert len(offered) == 16
        assert not first, "of those that are left out nothing is said"
        assert await caller.filter(*names) == {"NodeNames": names}
        assert await caller.filter(*names) == {"NodeNames": names}
        extender.attempts.offered.settled("uid-a")
        assert (await caller.filter(*names))["NodeNames"] == offered, "the same pod turns to the same nodes"

    async def test_whole_nodes_in_whole_nodes_out(self, caller: SchedulerCaller) -> None:
        nodes = [{"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {}} for name in ("n1", "n2")]
        body = {"Pod": pod_json("a", units=4), "Nodes": {"items": nodes}, "NodeNames": None}
        answer = await caller.post("/gpushare/filter", body)
        assert answer["Nodes"] == {"items": nodes[:1]}
        assert list(answer["FailedNodes"]) == ["n2"]

    @pytest.mark.parametrize(
        ("body", "error"),
        [
            pytest.param("", "not the arguments of a filter", id="empty"),
            pytest.param("{", "not the arguments of a filter", id="bad JSON"),
            pytest.param("[]", "not the arguments of a filter", id="not an object"),
            pytest.param(b"\xff\xfe", "not the arguments of a filter", id="not text"),
            pytest.param('{"Pod":' + "[" * 100_000, "not the arguments of a filter", id="nested without end"),
            pytest.param('{"NodeNames":["n1"]}', "no Pod", id="no pod"),
            pytest.param('{"Pod":null,"NodeNames":["n1"]}', "no Pod", id="nil pod"),
            pytest.param('{"Pod":{"spec":{"containers":"x"}}}', "not the arguments", id="odd containers"),
            pytest.param('{"Pod":{},"Nodes":{"items":[{}]}}', "not the arguments", id="a node without name"),
            pytest.param(
                '{"Pod":{},"NodeNames":[' + '"",' * MAX_NODES + '""]}',
                "length <= 100000",
                id="too many names",
            ),
            pytest.param(
                '{"Pod":{},"Nodes":{"items":[' + "1," * MAX_NODES + "1]}}",
                "length <= 100000",
                id="too many nodes",
            ),
        ],
    )
    async def test_what_it_cannot_read_is_an_error_for_the_scheduler(
        self, caller: SchedulerCaller, body: str | bytes, error: str
    ) -> None:
        assert error in (await caller.post("/gpushare/filter", body))["Error"]

    async def test_an_odd_but_readable_pod_is_no_error(self, caller: SchedulerCaller) -> None:
        body = {"Pod": {"metadata": {}, "spec": {"containers": None}}, "NodeNames": ["n1"]}
        assert await caller.post("/gpushare/filter", body) == {"NodeNames": ["n1"]}


class TestBind:
    async def test_the_pod_is_bound(self, caller: SchedulerCaller, api: FakeApi) -> None:
        await caller.filter("n1")
        assert await caller.post("/gpushare/bind", BIND) == {"Error": ""}
        assert api.pod("a")["spec"]["nodeName"] == "n1"

    async def test_no_node_is_better_for_a_pod_that_prefers_some_itself(
        self, caller: SchedulerCaller
    ) -> None:
        pod = pod_json("a", units=1)
        asking = {"Pod": pod, "NodeNames": ["n1", "n2"]}
        assert await self.scores(caller, asking) == [2, 10]
        pod["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
        assert await self.scores(caller, asking) == [0, 0]

    async def scores(self, caller: SchedulerCaller, asking: dict[str, Any]) -> list[int]:
        answer: Any = await caller.post("/gpushare/prioritize", asking)
        return [score["Score"] for score in answer]

    @pytest.mark.parametrize("verb", ["filter", "prioritize"])
    async def test_what_a_caller_said_of_the_pod_before_does_not_count(
        self, caller: SchedulerCaller, api: FakeApi, verb: str
    ) -> None:
        forged = {"Pod": pod_json("a", units=1), "NodeNames": ["n1"]}
        async with caller.session.post(caller.server.make_url(f"/gpushare/{verb}"), json=forged) as response:
            assert response.status == 200
        assert await caller.post("/gpushare/bind", BIND) == {"Error": ""}
        assert '"n1-0":4' in api.pod("a")["metadata"]["annotations"]["gpushare.io/allocation"]

    async def test_a_pod_that_asks_for_nothing_of_ours_is_not_bound(
        self, caller: SchedulerCaller, api: FakeApi
    ) -> None:
        api.put(PODS, pod_json("plain", units=None))
        answer = await caller.post("/gpushare/bind", {**BIND, "PodName": "plain", "PodUID": "uid-plain"})
        assert "the pod asks for no gpushare.io/memory" in answer["Error"]
        assert api.pod("plain")["spec"].get("nodeName") is None

    async def test_a_refusal_has_status_200_and_its_reason(self, caller: SchedulerCaller) -> None:
        answer = await caller.post("/gpushare/bind", {**BIND, "Node": "n2"})
        assert answer == {"Error": "insufficient GPU memory in one card: asked 4, largest free 2"}

    @pytest.mark.parametrize("body", ["", "{}", "[]", '{"PodName":null}', '{"PodName":"a","Node":"n1"}'])
    async def test_what_it_cannot_read_is_an_error_for_the_scheduler(
        self, caller: SchedulerCaller, body: str
    ) -> None:
        assert "not the arguments of a bind" in (await caller.post("/gpushare/bind", body))["Error"]


class TestInspect:
    async def test_all_nodes(self, caller: SchedulerCaller) -> None:
        code, answer = await caller.get("/gpushare/inspect")
        assert (code, [node["name"] for node in answer["nodes"]]) == (200, ["n1", "n2"])

    async def test_one_node(self, caller: SchedulerCaller) -> None:
        code, answer = await caller.get("/gpushare/inspect/n2")
        assert (code, answer["units"]) == (200, {"total": 32, "allocated": 29})
        assert answer["cards"][0]["pods"][0]["name"] == "x"

    async def test_an_unknown_node(self, caller: SchedulerCaller) -> None:
        assert await caller.get("/gpushare/inspect/n9") == (
            404,
            {"error": "node n9 does not share GPU cards"},
        )


class TestHealth:
    async def test_ready_once_both_collections_are_in_the_ledger(
        self, caller: SchedulerCaller, extender: ExtenderApi
    ) -> None:
        assert (await caller.get("/readyz"))[0] == 200
        extender.health.watches[0].listed = False
        assert await caller.get("/readyz") == (
            503,
            {"ok": False, "missing": "the extender has not read all pods yet"},
        )
        extender.health.watches[1].listed = False
        assert "pods and gpusharenodes" in (await caller.get("/readyz"))[1]["missing"]

    async def test_before_that_nothing_is_answered_that_could_over_commit(
        self, caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
    ) -> None:
        extender.health.watches[0].listed = False
        assert (await caller.filter("n1"))["Error"] == "the extender has not read all pods yet"
        answer = await caller.post("/gpushare/bind", BIND)
        assert answer["Error"] == "the extender has not read all pods yet"
        assert api.seen == []

    async def test_healthy_until_a_watch_is_stuck(
        self, caller: SchedulerCaller, extender: ExtenderApi, clock: FakeClock
    ) -> None:
        clock.now = DEAD_SECONDS
        assert (await caller.get("/healthz"))[0] == 200
        clock.now += 1.0
        extender.health.watches[0].pulse()
        code, answer = await caller.get("/healthz")
        assert (code, answer["secondsSinceLastSign"]["pods"]) == (503, 0.0)
        extender.health.watches[1].pulse()
        assert (await caller.get("/healthz"))[0] == 200


async def test_an_unknown_path_is_not_found(caller: SchedulerCaller) -> None:
    assert await caller.get("/gpushare-scheduler/filter") == (404, {"error": "Not Found"})


async def test_a_defect_fails_one_request_only(
    caller: SchedulerCaller, extender: ExtenderApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extender.ledger, "node_names", lambda: 1 / 0)
    code, answer = await caller.get("/gpushare/inspect")
    assert (code, "ZeroDivisionError" in answer["error"]) == (500, True)
    monkeypatch.undo()
    assert (await caller.get("/gpushare/inspect"))[0] == 200


@pytest.mark.parametrize("announced", [True, False], ids=["with its length", "in chunks"])
async def test_a_request_larger_than_any_of_a_scheduler_is_not_taken_in(
    caller: SchedulerCaller, *, announced: bool
) -> None:
    body = b" " * (MAX_REQUEST + 1)

    async def chunks() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), 2**16):
            yield body[begin : begin + 2**16]

    data = io.BytesIO(body) if announced else chunks()
    async with caller.session.post(caller.server.make_url("/gpushare/filter"), data=data) as response:
        assert response.status == 413
        assert "is nodeCacheCapable set" in (await response.json())["error"]


async def test_the_names_of_5000_nodes_are_no_large_request(caller: SchedulerCaller) -> None:
    names = [f"ip-10-100-200-{number}.eu-central-1.compute.internal" for number in range(5000)]
    assert (await caller.filter(*names))["NodeNames"] == []


class TestMetrics:
    async def test_what_the_scheduler_asked_is_counted(self, caller: SchedulerCaller) -> None:
        await caller.filter("n1", "n2")
        await caller.filter("n2", "n3")
        await caller.post("/gpushare/bind", BIND)
        text = await caller.text("/metrics")
        assert 'gpushare_extender_request_duration_seconds_count{verb="filter"} 2.0' in text
        assert 'gpushare_extender_request_duration_seconds_count{verb="bind"} 1.0' in text
        assert 'gpushare_extender_refusals_total{reason="NoRoom"} 1.0' in text
        assert 'gpushare_extender_refusals_total{reason="NotShared"} 1.0' in text
        assert 'gpushare_extender_binds_total{result="Bound"} 1.0' in text

    async def test_nothing_tells_of_pods_or_nodes(self, caller: SchedulerCaller) -> None:
        await caller.filter("n2")
        await caller.post("/gpushare/bind", BIND)
        text = await caller.text("/metrics")
        assert 'namespace="' not in text
        assert 'node="' not in text
        assert 'pod="' not in text
