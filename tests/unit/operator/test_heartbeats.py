"""Which plugins are not heard of any more, and what becomes of what they said."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import CARDS_HEALTHY, LEDGER_IN_SYNC, REGISTERED
from gpushare_core.api.plugin_heartbeat import RENEW_SECONDS, SILENT_SECONDS, heartbeat_lease
from gpushare_core.json_object import Json
from gpushare_operator.cluster.heartbeats import Heartbeats
from gpushare_operator.cluster.node_state import NodeState
from gpushare_operator.cluster.objects import NodeObject, PodObject, ShareNodeObject
from gpushare_operator.decide.silent_plugins import doubt_share_node, why_silent
from gpushare_operator.status.node_books import why_unseen
from gpushare_operator.status.node_readiness import why_not_ready

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def lease(node: str, *, renewed: datetime) -> Json:
    return heartbeat_lease(node, "uid", renewed)


def test_a_plugin_is_silent_once_its_lease_has_not_changed_for_long() -> None:
    clock, old = Clock(), lease("gpu-1", renewed=NOON)
    heartbeats = Heartbeats(clock)
    assert heartbeats.silent([old], {}, NOON) == {}
    clock.seconds = SILENT_SECONDS + 1
    later = NOON + timedelta(seconds=clock.seconds)
    assert heartbeats.silent([old, lease("gpu-2", renewed=later)], {}, later) == {"gpu-1": NOON}
    assert heartbeats.silent([lease("gpu-1", renewed=later)], {}, later) == {}


def test_a_report_is_a_sign_for_as_long_as_a_renewal_is() -> None:
    """A node that lost power just after its plugin had come back was never silent."""
    clock, old = Clock(), lease("gpu-1", renewed=NOON)
    heartbeats = Heartbeats(clock)
    heartbeats.silent([old], {}, NOON)
    reported = NOON + timedelta(seconds=SILENT_SECONDS)
    clock.seconds = SILENT_SECONDS + 1
    assert heartbeats.silent([old], {"gpu-1": reported}, NOON) == {}
    clock.seconds += SILENT_SECONDS + 1
    assert heartbeats.silent([old], {"gpu-1": reported}, NOON) == {"gpu-1": reported}


def test_two_renewals_may_fail() -> None:
    assert 2 * RENEW_SECONDS < SILENT_SECONDS < 3 * RENEW_SECONDS


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_node_may_be_wrong(hours: int) -> None:
    """What changes is alive, whatever time it says."""
    clock = Clock()
    heartbeats = Heartbeats(clock)
    for number in range(5):
        clock.seconds = number * RENEW_SECONDS
        now = NOON + timedelta(seconds=clock.seconds)
        silent = heartbeats.silent([lease("gpu-1", renewed=now + timedelta(hours=hours))], {}, now)
        assert silent == {} or number == 0


def test_an_operator_that_has_just_started_believes_the_time_of_a_lease() -> None:
    long_ago = NOON - timedelta(hours=1)
    assert Heartbeats(Clock()).silent([lease("gpu-1", renewed=long_ago)], {}, NOON) == {"gpu-1": long_ago}


@pytest.mark.parametrize(
    "spec", [{}, None, {"holderIdentity": "gpu-1"}, {"holderIdentity": "gpu-1", "renewTime": "x"}]
)
def test_a_lease_that_says_nothing_makes_nobody_silent(spec: Json | None) -> None:
    clock = Clock()
    heartbeats = Heartbeats(clock)
    heartbeats.silent([{"spec": spec}], {}, NOON)
    clock.seconds = 1000.0
    assert heartbeats.silent([{"spec": spec}], {}, NOON) == {}


WELL = (
    condition_true(REGISTERED, "Registered"),
    condition_true(CARDS_HEALTHY, "AllHealthy"),
    condition_true(LEDGER_IN_SYNC, "InSync"),
)


def state(*conditions: ConditionState, ready: bool = True) -> NodeState:
    share = ShareNodeObject(
        name="gpu-1",
        uid="u",
        spec={"policy": "default"},
        observed_generation=1,
        conditions={each.type: each for each in conditions or WELL},
    )
    pod = PodObject(name="plugin-x", component="plugin", node="gpu-1", ready=True)
    return NodeState("gpu-1", NodeObject(name="gpu-1", ready=ready), share, (pod,), NOON)


def test_what_a_silent_plugin_said_is_not_true_any_more() -> None:
    (action,) = doubt_share_node(state())
    assert [(each.type, each.status, each.reason) for each in action.conditions] == [
        (REGISTERED, "Unknown", "PluginSilent"),
        (CARDS_HEALTHY, "Unknown", "PluginSilent"),
        (LEDGER_IN_SYNC, "Unknown", "PluginSilent"),
    ]
    assert "heard of last at 2026-11-21T12:00:00Z" in action.conditions[0].message
    assert "plugin-x" in action.conditions[0].message


def test_a_node_that_is_not_ready_is_named_as_the_reason() -> None:
    (action,) = doubt_share_node(state(ready=False))
    assert {each.reason for each in action.conditions} == {"NodeNotReady"}
    assert "the node itself is not Ready" in action.conditions[0].message


def test_what_was_wrong_stays_as_it_was_said() -> None:
    wrong = condition_false(REGISTERED, "NoCards", "no card")
    assert list(doubt_share_node(state(wrong))) == []


def test_what_is_doubted_already_is_not_written_again() -> None:
    (action,) = doubt_share_node(state())
    assert list(doubt_share_node(state(*action.conditions))) == []


def test_a_plugin_that_is_heard_of_is_not_doubted() -> None:
    heard = replace(state(), silent_since=None)
    assert list(doubt_share_node(heard)) == []
    assert (why_silent(heard), why_not_ready(heard), why_unseen(heard)) == ("", "", "")


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
    assert "heard of last" in why_unseen(state())
    assert why_not_ready(state(ready=False)) == "the node itself is not Ready"
