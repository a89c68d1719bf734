"""A pod with more memory than it asked for, from what the plugin measures to its eviction."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import NAMESPACE, Cluster, Operator, converge

from gpushare_core.api.plugin_heartbeat import heartbeat_lease
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.evictions import EvictionResult
from gpushare_operator.reconcile import HEARTBEATS, PolicyReconciler

PODS = paths.pods("team")
EVENTS = paths.events("team")
EVICTIONS = f"create {PODS}/a/eviction"
MEASURED: Json = {"measurement": {"scope": "Containers"}}


def report_excess(cluster: Cluster, since: datetime, *, uid: str = "uid-a", used: str = "12Gi") -> None:
    """The plugin of gpu-1 measures that pod a has more than its 8Gi."""
    share = {"namespace": "team", "name": "a", "uid": uid, "container": "main", "units": 8}
    exceeding = {**share, "usedMemory": used, "exceededSince": rfc3339(since)}
    _report(cluster, [exceeding], exceeded="True")


def _report(cluster: Cluster, shares: list[Json], *, exceeded: str) -> None:
    status = cluster.api.of(paths.SHARE_NODES)["gpu-1"]["status"]
    moment = "2026-11-21T12:00:00Z"
    condition = {"type": "MemoryExceeded", "status": exceeded, "reason": "Because", "message": ""}
    others = [each for each in status["conditions"] if each["type"] != "MemoryExceeded"]
    card = {"index": 0, "uuid": "GPU-0", "memory": "16Gi", "units": 16, "pods": shares}
    report = {
        "memoryUnit": "1Gi",
        "cards": [card],
        "conditions": [*others, {**condition, "lastTransitionTime": moment}],
    }
    cluster.api.change(paths.SHARE_NODES, "gpu-1", {"status": report})


@dataclass
class World:
    """A cluster whose pod a has more memory than it asked for, from now on."""

    cluster: Cluster
    operator: Operator
    skew: timedelta = timedelta()
    """By which the node's clock is ahead of the operator's."""
    seconds: float = 1000.0
    """The operator's steady clock."""
    results: list[EvictionResult] = field(default_factory=list)
    since: datetime = field(init=False)

    def __post_init__(self) -> None:
        evictions, heartbeats = self.operator.reconciler.evictions, self.operator.reconciler.heartbeats
        evictions.clock = heartbeats.clock = lambda: self.seconds
        evictions.attempted = self.results.append
        self.since = self.node_time
        self.cluster.api.put(PODS, {"metadata": {"name": "a", "namespace": "team", "uid": "uid-a"}})
        report_excess(self.cluster, self.since)

    @property
    def node_time(self) -> datetime:
        return self.operator.now + self.skew

    def renew(self) -> None:
        lease = heartbeat_lease("gpu-1", "uid", self.node_time)
        self.cluster.api.put(paths.leases(NAMESPACE), lease)

    async def look(self) -> float | None:
        """The operator's watches are up to date, and it works on the policy."""
        await self.operator.reconciler.work(HEARTBEATS)
        await self.operator.resync()
        return await self.operator.reconciler.work("default")

    async def elapse(self, seconds: float, *, is_plugin_alive: bool = True) -> None:
        """Time passes; the operator looks every 15 seconds."""
        end = self.seconds + seconds
        while self.seconds < end:
            step = min(15.0, end - self.seconds)
            self.seconds += step
            self.operator.now += timedelta(seconds=step)
            if is_plugin_alive:
                self.renew()
            await self.look()

    @property
    def evictions(self) -> int:
        return self.cluster.api.writes.count(EVICTIONS)

    @property
    def is_evicted(self) -> bool:
        return "deletionTimestamp" in self.cluster.api.of(PODS)["a"]["metadata"]

    def events(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["note"]) for event in self.cluster.api.of(EVENTS).values()]

    def condition(self, type_: str) -> Json:
        conditions = self.cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
        found: Json = next(condition for condition in conditions if condition["type"] == type_)
        return found


async def world(*, skew: float = 0.0, **isolation: Any) -> World:
    cluster = Cluster()
    cluster.add_node("cp", control_plane=True)
    cluster.add_node("gpu-1")
    asked = {"onExcess": "Evict", "graceSeconds": 60, **isolation}
    rule = {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS, "isolation": asked}
    cluster.add_policy("default", rule, plugin=MEASURED)
    operator = await converge(cluster)
    exceeding = World(cluster, operator, timedelta(seconds=skew))
    exceeding.renew()
    await exceeding.look()
    return exceeding


async def test_a_pod_is_evicted_once_its_grace_has_passed_and_is_told_why() -> None:
    seen = await world()
    await seen.elapse(45)
    assert seen.evictions == 0
    await seen.elapse(15)
    assert seen.is_evicted
    ((reason, note),) = seen.events()
    assert reason == "EvictedForMemory"
    assert note == (
        "container main has 12Gi of card GPU-0 of node gpu-1 and asked for 8Gi, for 60 s: its pod is"
        " evicted, by isolation.onExcess Evict of policy default; ask for more, or limit what the"
        " program uses"
    )
    (event,) = seen.cluster.api.of(EVENTS).values()
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "team",
        "name": "a",
        "uid": "uid-a",
    }
    assert seen.results == [EvictionResult.EVICTED]


async def test_a_pod_that_ends_is_not_evicted_again() -> None:
    seen = await world()
    await seen.elapse(300)
    assert seen.evictions == 1


async def test_without_grace_it_is_evicted_when_its_plugin_has_shown_that_it_works() -> None:
    seen = await world(graceSeconds=0)
    assert seen.is_evicted


@pytest.mark.parametrize("skew", [-3600.0, 3600.0], ids=["behind", "ahead"])
async def test_a_clock_of_the_node_that_is_wrong_changes_nothing(skew: float) -> None:
    seen = await world(skew=skew)
    await seen.elapse(45)
    assert seen.evictions == 0
    await seen.elapse(15)
    assert seen.is_evicted


async def test_a_clock_of_the_node_that_jumps_ahead_ends_no_grace() -> None:
    seen = await world()
    seen.skew = timedelta(hours=1)
    await seen.elapse(45)
    assert seen.evictions == 0


def ends(seen: World) -> None:
    _report(seen.cluster, [], exceeded="False")


def is_interrupted(seen: World) -> None:
    report_excess(seen.cluster, seen.node_time + timedelta(seconds=1))


def is_not_measured(seen: World) -> None:
    status = seen.cluster.api.of(paths.SHARE_NODES)["gpu-1"]["status"]
    _report(seen.cluster, status["cards"][0]["pods"], exceeded="Unknown")


def loses_its_node(seen: World) -> None:
    conditions = [{"type": "Ready", "status": "Unknown"}]
    seen.cluster.api.change(paths.NODES, "gpu-1", {"status": {"conditions": conditions}})


def belongs_to_a_plugin_that_has_not_answered(seen: World) -> None:
    seen.cluster.api.change(paths.SHARE_NODES, "gpu-1", {"spec": {"logLevel": "debug"}})


def is_deleted_with_its_policy(seen: World) -> None:
    seen.cluster.delete_policy("default")


def is_only_reported(seen: World) -> None:
    policy = seen.cluster.api.of(paths.POLICIES)["default"]
    rule = policy["spec"]["nodes"][0]
    report = {**rule, "isolation": {**rule["isolation"], "onExcess": "Report"}}
    seen.cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [report]}})


@pytest.mark.parametrize(
    "change",
    [
        ends,
        is_interrupted,
        is_not_measured,
        loses_its_node,
        belongs_to_a_plugin_that_has_not_answered,
        is_deleted_with_its_policy,
        is_only_reported,
    ],
)
async def test_a_pod_is_not_evicted_whose_excess(change: Callable[[World], None]) -> None:
    seen = await world()
    await seen.elapse(45)
    change(seen)
    await seen.elapse(45)
    assert seen.evictions == 0


async def test_a_plugin_that_has_fallen_silent_evicts_nobody() -> None:
    """What it has reported may be over: it may have been killed the moment after."""
    seen = await world()
    await seen.elapse(300, is_plugin_alive=False)
    assert seen.evictions == 0


async def test_an_excess_that_no_watch_has_shown_to_be_over_is_looked_at_before_the_eviction() -> None:
    seen = await world()
    await seen.elapse(45)
    seen.seconds += 15
    seen.operator.now += timedelta(seconds=15)
    seen.renew()
    await seen.operator.reconciler.work(HEARTBEATS)
    ends(seen)
    await seen.operator.reconciler.work("default")
    assert seen.evictions == 0
    assert "default" in seen.operator.asked, "no watch reports what the operator knows by now"


async def test_a_restarted_operator_gives_the_grace_anew() -> None:
    seen = await world()
    await seen.elapse(45)
    after = World(seen.cluster, Operator(seen.cluster, now=seen.operator.now))
    report_excess(seen.cluster, seen.since)
    await after.elapse(45)
    assert after.evictions == 0
    await after.elapse(30)
    assert after.is_evicted


async def test_a_disruption_budget_keeps_the_pod_and_that_is_said_until_it_allows_it() -> None:
    seen = await world()
    seen.cluster.api.protected = {"a"}
    await seen.elapse(75)
    assert not seen.is_evicted
    ((reason, note),) = seen.events()
    assert reason == "EvictionForMemoryRefused"
    assert "it would violate the pod's disruption budget" in note
    degraded = seen.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "EvictionsRefused")
    assert "evict pod team/a: container main has 12Gi of card GPU-0" in degraded["message"]
    await seen.elapse(300)
    assert seen.evictions < 10, "ever more rarely"
    assert len(seen.events()) == 1

    seen.cluster.api.protected = set()
    await seen.elapse(75)
    assert seen.is_evicted
    await seen.elapse(15)
    assert seen.condition("Degraded")["status"] == "False"


async def test_a_policy_that_only_reports_by_now_says_no_more_that_evictions_are_refused() -> None:
    seen = await world()
    seen.cluster.api.protected = {"a"}
    await seen.elapse(75)
    assert seen.condition("Degraded")["reason"] == "EvictionsRefused"
    is_only_reported(seen)
    await seen.elapse(30)
    assert seen.condition("Degraded")["status"] == "False"


async def test_a_policy_that_is_changed_while_the_operator_writes_evicts_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = await world()
    await seen.elapse(45)
    seen.seconds += 15
    seen.operator.now += timedelta(seconds=15)
    seen.renew()
    await seen.operator.reconciler.work(HEARTBEATS)

    async def change_meanwhile(*_: object) -> None:
        is_only_reported(seen)
        await seen.operator.resync()

    monkeypatch.setattr(PolicyReconciler, "_post_notices", change_meanwhile)
    await seen.operator.reconciler.work("default")
    assert seen.evictions == 0


async def test_another_pod_of_the_name_is_left_alone() -> None:
    seen = await world()
    seen.cluster.api.put(PODS, {"metadata": {"name": "a", "namespace": "team", "uid": "uid-b"}})
    await seen.elapse(300)
    assert not seen.is_evicted
    assert (seen.results, seen.events()) == ([EvictionResult.GONE], [])


async def test_a_refusal_for_another_reason_reaches_people_and_keeps_nothing_else_from_being_done() -> None:
    seen = await world()
    seen.cluster.api.refuse = lambda write: write.startswith(EVICTIONS)
    await seen.elapse(90)
    assert seen.condition("Degraded")["reason"] == "EvictionsRefused"
    assert seen.condition("Ready")["status"] == "True"
    assert set(seen.results) == {EvictionResult.FAILED}
