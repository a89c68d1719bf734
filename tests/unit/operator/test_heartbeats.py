"""Which plugins are not heard of any more, and what becomes of what they said."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import CARDS_HEALTHY, LEDGER_IN_SYNC, REGISTERED
from gpushare_core.api.plugin_heartbeat import RENEW_SECONDS, SILENT_SECONDS, heartbeat_lease
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.heartbeats import MAX_GAP, Heartbeats, written_by_running_plugins
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, PodObject, ShareNodeObject
from gpushare_operator.decide.unavailable_plugins import doubt_share_node, why_unavailable
from gpushare_operator.reconcile import HEARTBEATS_SECONDS
from gpushare_operator.status.nodes.node_audit import why_plugin_cannot_audit
from gpushare_operator.status.nodes.node_readiness import why_not_ready

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def lease(node: str, *, renewed: datetime) -> Json:
    return heartbeat_lease(node, "uid", renewed)


class Looks:
    """An operator that looks every 15 seconds, and what the Leases say meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.heartbeats = Heartbeats(lambda: self.seconds)
        self.renewed: dict[str, datetime] = {}
        self.reported: dict[str, datetime] = {}

    @property
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def look(self) -> Mapping[str, datetime]:
        leases = [lease(name, renewed=renewed) for name, renewed in self.renewed.items()]
        return self.heartbeats.unavailable(leases, self.reported)

    def go_on(self, seconds: float) -> Mapping[str, datetime]:
        """Returns who is silent after so long."""
        until = self.seconds + seconds
        while self.seconds + HEARTBEATS_SECONDS < until:
            self.seconds += HEARTBEATS_SECONDS
            self.look()
        self.seconds = until
        return self.look()

    def look_away(self, seconds: float) -> None:
        """The API server answers nobody."""
        self.seconds += seconds


def test_a_plugin_is_silent_once_its_lease_has_not_changed_for_long() -> None:
    looks = Looks()
    looks.renewed["gpu-1"] = NOON
    assert looks.look() == {}
    assert looks.go_on(SILENT_SECONDS) == {}
    looks.renewed["gpu-2"] = looks.now
    assert looks.go_on(1) == {"gpu-1": NOON}
    looks.renewed["gpu-1"] = looks.now
    assert looks.go_on(1) == {}


def test_a_report_is_a_sign_for_as_long_as_a_renewal_is() -> None:
    """A node that lost power just after its plugin had come back was never silent."""
    looks = Looks()
    looks.renewed["gpu-1"] = NOON
    looks.go_on(SILENT_SECONDS)
    looks.reported["gpu-1"] = looks.now
    assert looks.go_on(SILENT_SECONDS) == {}
    assert looks.go_on(HEARTBEATS_SECONDS + 1) == looks.reported


def test_what_the_operator_takes_back_is_no_sign() -> None:
    looks = Looks()
    looks.renewed["gpu-1"] = looks.reported["gpu-1"] = NOON
    looks.look()
    assert looks.go_on(SILENT_SECONDS + 1) == {"gpu-1": NOON}
    looks.reported.clear()
    assert looks.go_on(1) == {"gpu-1": NOON}


def test_two_renewals_may_fail() -> None:
    assert 2 * RENEW_SECONDS < SILENT_SECONDS < 3 * RENEW_SECONDS


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_node_may_be_wrong(hours: int) -> None:
    """What changes is alive, whatever time it says."""
    looks = Looks()
    for _ in range(5):
        looks.renewed["gpu-1"] = looks.now + timedelta(hours=hours)
        assert looks.go_on(RENEW_SECONDS) == {}


def test_the_clock_of_a_node_may_be_put_back() -> None:
    """As after a start, once the time is had from the network: its report is of the future until then."""
    looks = Looks()
    looks.reported["gpu-1"] = looks.renewed["gpu-1"] = NOON + timedelta(hours=1)
    looks.look()
    for _ in range(5):
        looks.renewed["gpu-1"] = looks.now
        assert looks.go_on(RENEW_SECONDS) == {}


def test_an_operator_that_has_just_started_calls_nobody_silent() -> None:
    """The API server may have been away for both: thousands of plugins renew their Leases a little later."""
    looks = Looks()
    looks.renewed["gpu-1"] = NOON - timedelta(hours=1)
    assert looks.look() == {}
    assert looks.go_on(SILENT_SECONDS + 1) == looks.renewed


@pytest.mark.parametrize("minutes", [1, 10])
def test_while_the_api_server_is_away_nobody_can_be_heard(minutes: int) -> None:
    looks = Looks()
    looks.renewed.update({"gpu-1": NOON, "gpu-2": NOON - timedelta(hours=1)})
    looks.look()
    looks.renewed["gpu-1"] = NOON + timedelta(seconds=RENEW_SECONDS)
    assert looks.go_on(SILENT_SECONDS + 1) == {"gpu-2": NOON - timedelta(hours=1)}
    looks.look_away(60.0 * minutes)
    assert [*looks.look()] == ["gpu-2"], "of whom nothing was heard before"
    assert [*looks.go_on(2 * RENEW_SECONDS)] == ["gpu-2"]
    assert [*looks.go_on(SILENT_SECONDS)] == ["gpu-1", "gpu-2"]


def test_looks_may_be_late_without_anybody_being_called_silent() -> None:
    assert RENEW_SECONDS + MAX_GAP + HEARTBEATS_SECONDS <= SILENT_SECONDS
    assert HEARTBEATS_SECONDS < MAX_GAP


@pytest.mark.parametrize(
    "spec", [{}, None, {"holderIdentity": "gpu-1"}, {"holderIdentity": "gpu-1", "renewTime": "x"}]
)
def test_a_lease_that_says_nothing_makes_nobody_silent(spec: Json | None) -> None:
    looks = Looks()
    for _ in range(10):
        looks.seconds += HEARTBEATS_SECONDS
        assert looks.heartbeats.unavailable([{"spec": spec}], {}) == {}


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


def test_what_a_silent_plugin_said_is_not_true_any_more() -> None:
    (action,) = doubt_share_node(state())
    assert [(condition.type, condition.status, condition.reason) for condition in action.conditions] == [
        (REGISTERED, "Unknown", "PluginSilent"),
        (CARDS_HEALTHY, "Unknown", "PluginSilent"),
        (LEDGER_IN_SYNC, "Unknown", "PluginSilent"),
    ]
    assert "heard of last at 2026-11-21T12:00:00Z" in action.conditions[0].message
    assert "plugin-x" in action.conditions[0].message


def test_a_node_that_is_not_ready_is_named_as_the_reason() -> None:
    (action,) = doubt_share_node(state(ready=False))
    assert {condition.reason for condition in action.conditions} == {"NodeNotReady"}
    assert "the node itself is not Ready" in action.conditions[0].message


def test_what_was_wrong_stays_as_it_was_said() -> None:
    wrong = condition_false(REGISTERED, "NoCards", "no card")
    assert list(doubt_share_node(state(wrong))) == []


def test_what_is_doubted_already_is_not_written_again() -> None:
    (action,) = doubt_share_node(state())
    assert list(doubt_share_node(state(*action.conditions))) == []


def test_a_plugin_that_is_heard_of_is_not_doubted() -> None:
    heard = replace(state(), unavailable_since=None)
    assert list(doubt_share_node(heard)) == []
    assert (why_unavailable(heard), why_not_ready(heard), why_plugin_cannot_audit(heard)) == ("", "", "")


def test_a_plugin_that_has_reported_since_is_back() -> None:
    """Its Lease is looked at later: the operator and the plugin wrote against each other until then."""
    silent = state()
    assert silent.share is not None
    back = replace(silent, share=replace(silent.share, registered_since=NOON + timedelta(seconds=90)))
    assert list(doubt_share_node(back)) == []
    assert why_not_ready(back) == ""
    before = replace(silent, share=replace(silent.share, registered_since=NOON - timedelta(days=1)))
    assert len(list(doubt_share_node(before))) == 1


def test_a_policy_says_so_of_its_node() -> None:
    assert "heard of last" in why_not_ready(state())
    assert "heard of last" in why_plugin_cannot_audit(state())
    assert why_not_ready(state(ready=False)) == "the node itself is not Ready"
