"""Which plugins are unavailable, and what becomes of what they reported."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import (
    CARDS_HEALTHY,
    ISOLATION_IN_FORCE,
    ISOLATION_READY,
    LEDGER_IN_SYNC,
    REGISTERED,
)
from gpushare_core.api.plugin_heartbeat import (
    RENEW_SECONDS,
    SILENT_SECONDS,
    heartbeat_lease,
    isolation_files,
)
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.heartbeats import (
    MAX_GAP,
    Heartbeats,
    isolation_files_by_node,
    written_by_running_plugins,
)
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, PodObject, ShareNodeObject
from gpushare_operator.decide.unavailable_plugins import doubt_share_node, why_unavailable
from gpushare_operator.reconcile import HEARTBEATS_SECONDS
from gpushare_operator.status.nodes.node_audit import why_plugin_cannot_audit
from gpushare_operator.status.nodes.node_readiness import why_not_ready

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def lease(node: str, *, renewed: datetime) -> Json:
    return heartbeat_lease(node, "uid", renewed)


class HeartbeatReader:
    """An operator that reads every 15 seconds, and what the Leases say meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.heartbeats = Heartbeats(lambda: self.seconds)
        self.renewed: dict[str, datetime] = {}
        self.reported: dict[str, datetime] = {}

    @property
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def read(self) -> Mapping[str, datetime]:
        leases = [lease(name, renewed=renewed) for name, renewed in self.renewed.items()]
        return self.heartbeats.unavailable(leases, self.reported)

    def go_on(self, seconds: float) -> Mapping[str, datetime]:
        """Returns who is unavailable after so long."""
        until = self.seconds + seconds
        while self.seconds + HEARTBEATS_SECONDS < until:
            self.seconds += HEARTBEATS_SECONDS
            self.read()
        self.seconds = until
        return self.read()

    def pause(self, seconds: float) -> None:
        """The API server answers nobody."""
        self.seconds += seconds


def test_a_plugin_is_unavailable_once_its_lease_has_not_changed_for_long() -> None:
    watcher = HeartbeatReader()
    watcher.renewed["gpu-1"] = NOON
    assert watcher.read() == {}
    assert watcher.go_on(SILENT_SECONDS) == {}
    watcher.renewed["gpu-2"] = watcher.now
    assert watcher.go_on(1) == {"gpu-1": NOON}
    watcher.renewed["gpu-1"] = watcher.now
    assert watcher.go_on(1) == {}


def test_a_report_is_a_sign_for_as_long_as_a_renewal_is() -> None:
    """A node that lost power just after its plugin had come back was never unavailable."""
    watcher = HeartbeatReader()
    watcher.renewed["gpu-1"] = NOON
    watcher.go_on(SILENT_SECONDS)
    watcher.reported["gpu-1"] = watcher.now
    assert watcher.go_on(SILENT_SECONDS) == {}
    assert watcher.go_on(HEARTBEATS_SECONDS + 1) == watcher.reported


def test_what_the_operator_takes_back_is_no_sign() -> None:
    watcher = HeartbeatReader()
    watcher.renewed["gpu-1"] = watcher.reported["gpu-1"] = NOON
    watcher.read()
    assert watcher.go_on(SILENT_SECONDS + 1) == {"gpu-1": NOON}
    watcher.reported.clear()
    assert watcher.go_on(1) == {"gpu-1": NOON}


def test_two_renewals_may_fail() -> None:
    assert 2 * RENEW_SECONDS < SILENT_SECONDS < 3 * RENEW_SECONDS


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_node_may_be_wrong(hours: int) -> None:
    """What changes is alive, whatever time it says."""
    watcher = HeartbeatReader()
    for _ in range(5):
        watcher.renewed["gpu-1"] = watcher.now + timedelta(hours=hours)
        assert watcher.go_on(RENEW_SECONDS) == {}


def test_the_clock_of_a_node_may_be_put_back() -> None:
    """As after a start, once the time is had from the network: its report is of the future until then."""
    watcher = HeartbeatReader()
    watcher.reported["gpu-1"] = watcher.renewed["gpu-1"] = NOON + timedelta(hours=1)
    watcher.read()
    for _ in range(5):
        watcher.renewed["gpu-1"] = watcher.now
        assert watcher.go_on(RENEW_SECONDS) == {}


def test_an_operator_that_has_just_started_calls_nobody_unavailable() -> None:
    """The API server may have been away for both: thousands of plugins renew their Leases a little later."""
    watcher = HeartbeatReader()
    watcher.renewed["gpu-1"] = NOON - timedelta(hours=1)
    assert watcher.read() == {}
    assert watcher.go_on(SILENT_SECONDS + 1) == watcher.renewed


@pytest.mark.parametrize("minutes", [1, 10])
def test_while_the_api_server_is_away_nobody_can_be_heard(minutes: int) -> None:
    watcher = HeartbeatReader()
    watcher.renewed.update({"gpu-1": NOON, "gpu-2": NOON - timedelta(hours=1)})
    watcher.read()
    watcher.renewed["gpu-1"] = NOON + timedelta(seconds=RENEW_SECONDS)
    assert watcher.go_on(SILENT_SECONDS + 1) == {"gpu-2": NOON - timedelta(hours=1)}
    watcher.pause(60.0 * minutes)
    assert [*watcher.read()] == ["gpu-2"], "of whom nothing was heard before"
    assert [*watcher.go_on(2 * RENEW_SECONDS)] == ["gpu-2"]
    assert [*watcher.go_on(SILENT_SECONDS)] == ["gpu-1", "gpu-2"]


def test_readings_may_be_late_without_anybody_being_called_unavailable() -> None:
    assert RENEW_SECONDS + MAX_GAP + HEARTBEATS_SECONDS <= SILENT_SECONDS
    assert HEARTBEATS_SECONDS < MAX_GAP


@pytest.mark.parametrize(
    "spec", [{}, None, {"holderIdentity": "gpu-1"}, {"holderIdentity": "gpu-1", "renewTime": "x"}]
)
def test_a_lease_that_says_nothing_makes_nobody_unavailable(spec: Json | None) -> None:
    watcher = HeartbeatReader()
    for _ in range(10):
        watcher.seconds += HEARTBEATS_SECONDS
        assert watcher.heartbeats.unavailable([{"spec": spec}], {}) == {}


@pytest.mark.parametrize(
    ("started", "ready", "counts"),
    [
        pytest.param(NOON + timedelta(days=1), True, False, id="somebody went back to an earlier version"),
        pytest.param(NOON + timedelta(days=1), False, True, id="it started and is not ready"),
        pytest.param(NOON - timedelta(days=1), True, True, id="it renewed the Lease itself"),
        pytest.param(None, True, True, id="it is not known when it started"),
    ],
)
def test_a_lease_of_a_former_plugin_says_nothing_of_one_that_renews_none(
    *, started: datetime | None, ready: bool, counts: bool
) -> None:
    pod = PodObject(name="plugin-x", component="plugin", node="gpu-1", ready=ready, started=started)
    old = lease("gpu-1", renewed=NOON)
    assert (
        written_by_running_plugins([old], {"gpu-1": ObservedState("gpu-1", plugins=(pod,))}) == [old] * counts
    )
    assert written_by_running_plugins([old], {"gpu-1": ObservedState("gpu-1")}) == [old]
    assert written_by_running_plugins([old], {}) == [old]


WELL = (
    condition_true(REGISTERED, "Registered"),
    condition_true(CARDS_HEALTHY, "AllHealthy"),
    condition_true(LEDGER_IN_SYNC, "InSync"),
    condition_true(ISOLATION_READY, "Hook"),
    condition_true(ISOLATION_IN_FORCE, "InForce"),
)


def state(*conditions: ConditionState, ready: bool = True) -> ObservedState:
    share = ShareNodeObject(
        name="gpu-1",
        uid="u",
        spec={"policy": "default"},
        observed_generation=1,
        conditions={condition.type: condition for condition in conditions or WELL},
    )
    pod = PodObject(name="plugin-x", component="plugin", node="gpu-1", ready=True)
    return ObservedState("gpu-1", NodeObject(name="gpu-1", ready=ready), share, (pod,), NOON)


def test_what_an_unavailable_plugin_reported_is_not_true_any_more() -> None:
    (action,) = doubt_share_node(state())
    assert [(condition.type, condition.status, condition.reason) for condition in action.conditions] == [
        (REGISTERED, "Unknown", "PluginSilent"),
        (CARDS_HEALTHY, "Unknown", "PluginSilent"),
        (LEDGER_IN_SYNC, "Unknown", "PluginSilent"),
        (ISOLATION_READY, "Unknown", "PluginSilent"),
        (ISOLATION_IN_FORCE, "Unknown", "PluginSilent"),
    ]
    assert "last reported at 2026-11-21T12:00:00Z" in action.conditions[0].message
    assert "plugin-x" in action.conditions[0].message


def test_a_node_that_is_not_ready_is_named_as_the_reason() -> None:
    (action,) = doubt_share_node(state(ready=False))
    assert {condition.reason for condition in action.conditions} == {"NodeNotReady"}
    assert "the node itself is not Ready" in action.conditions[0].message


def test_what_was_wrong_stays_as_it_was_said() -> None:
    wrong = condition_false(REGISTERED, "NoCards", "no card")
    assert list(doubt_share_node(state(wrong))) == []


def test_a_plugin_that_stopped_and_did_not_come_back_is_not_being_replaced() -> None:
    """It wrote "wait for the next one", and there was none."""
    stopped = replace(state(condition_false(REGISTERED, "Stopping", "wait for the next one")), plugins=())
    (action,) = doubt_share_node(stopped)
    (condition,) = action.conditions
    assert (condition.status, condition.reason) == ("Unknown", "PluginSilent")
    assert "has no pod there now; after five minutes the kubelet restarts no container" in condition.message


def test_what_is_doubted_already_is_not_written_again() -> None:
    (action,) = doubt_share_node(state())
    assert list(doubt_share_node(state(*action.conditions))) == []


def test_a_plugin_that_is_heard_of_is_not_doubted() -> None:
    heard = replace(state(), unavailable_since=None)
    assert list(doubt_share_node(heard)) == []
    assert (why_unavailable(heard), why_not_ready(heard), why_plugin_cannot_audit(heard)) == ("", "", "")


def test_a_plugin_that_has_reported_since_is_back() -> None:
    """Its Lease is looked at later: the operator and the plugin wrote against each other until then."""
    unavailable = state()
    assert unavailable.share is not None
    back = replace(
        unavailable, share=replace(unavailable.share, registered_since=NOON + timedelta(seconds=90))
    )
    assert list(doubt_share_node(back)) == []
    assert why_not_ready(back) == ""
    before = replace(unavailable, share=replace(unavailable.share, registered_since=NOON - timedelta(days=1)))
    assert len(list(doubt_share_node(before))) == 1


def test_a_policy_says_so_of_its_node() -> None:
    assert "last reported" in why_not_ready(state())
    assert "last reported" in why_plugin_cannot_audit(state())
    assert why_not_ready(state(ready=False)) == "the node itself is not Ready"


NEEDED = isolation_files(["default/a"])
RUNNING = PodObject(name="plugin-x", component="plugin", node="gpu-1", ready=True, started=NOON)


def test_files_of_isolation_are_known_by_node() -> None:
    leases = [heartbeat_lease("gpu-1", "uid", NOON, files=NEEDED), heartbeat_lease("gpu-2", "uid", NOON), {}]
    assert isolation_files_by_node(leases, {}, NOON) == {"gpu-1": NEEDED}


@pytest.mark.parametrize(
    ("renewed", "now", "plugin", "is_known"),
    [
        pytest.param(-20.0, 5.0, RUNNING, False, id="by its predecessor"),
        pytest.param(2.0, 5.0, RUNNING, False, id="at its start"),
        pytest.param(2.0, -3600.0, RUNNING, False, id="at its start, by a clock ahead"),
        pytest.param(None, 5.0, RUNNING, False, id="not yet"),
        pytest.param(RENEW_SECONDS, 5.0, RUNNING, True, id="since"),
        pytest.param(-20.0, 3600.0, RUNNING, True, id="by a predecessor that had one"),
        pytest.param(None, 3600.0, RUNNING, True, id="never, by an earlier version"),
        pytest.param(None, -3600.0, RUNNING, True, id="never, by a clock ahead"),
        pytest.param(-20.0, 5.0, replace(RUNNING, ready=False), True, id="by one that crashes"),
    ],
)
def test_a_plugin_that_has_just_started_has_not_told_of_files(
    *, renewed: float | None, now: float, plugin: PodObject, is_known: bool
) -> None:
    """``renewed`` and ``now`` are in seconds after its start."""
    leases = [] if renewed is None else [lease("gpu-1", renewed=NOON + timedelta(seconds=renewed))]
    states = {"gpu-1": ObservedState("gpu-1", NodeObject(name="gpu-1", ready=True), None, (plugin,))}
    told = isolation_files_by_node(leases, states, NOON + timedelta(seconds=now))
    assert told == ({} if is_known else {"gpu-1": None})


def test_what_a_predecessor_told_of_files_counts_until_its_plugin_tells() -> None:
    states = {"gpu-1": ObservedState("gpu-1", NodeObject(name="gpu-1", ready=True), None, (RUNNING,))}
    leases = [heartbeat_lease("gpu-1", "uid", NOON, files=NEEDED)]
    assert isolation_files_by_node(leases, states, NOON) == {"gpu-1": NEEDED}


def test_a_plugin_that_fell_silent_after_its_start_is_not_waited_for() -> None:
    silent = ObservedState("gpu-1", NodeObject(name="gpu-1", ready=True), None, (RUNNING,), NOON)
    leases = [lease("gpu-1", renewed=NOON + timedelta(seconds=2))]
    assert isolation_files_by_node(leases, {"gpu-1": silent}, NOON) == {}
