"""The status follows use only where it has moved far; an excess is reported at once, and once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import GIB, name_of, share_node

from gpushare_core.api.enums import MeasurementScope
from gpushare_core.api.served import Problem
from gpushare_core.placement.quantity import MIB
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse
from gpushare_plugin.decide.use.excess import excess_conditions, excess_events
from gpushare_plugin.decide.use.reported_use import ReportedUse, recorded_use, reported_use

A = ContainerShare(name_of("a"), "uid-a", "main", "GPU-0")
B = ContainerShare(name_of("b"), "uid-b", "main", "GPU-0")
MEMORY = {"GPU-0": 100 * GIB, "GPU-1": 100 * GIB}
ASKED = {A: 10 * GIB, B: 20 * GIB}


def use(card: float, **containers: float) -> ReportedUse:
    keys = {"a": A, "b": B}
    return ReportedUse(
        cards={"GPU-0": int(card * GIB)},
        containers={keys[name]: int(size * GIB) for name, size in containers.items()},
    )


def measured(card: float, **containers: float) -> MeasuredUse:
    reported = use(card, **containers)
    return MeasuredUse(cards=reported.cards, containers=reported.containers, requested=ASKED)


@pytest.mark.parametrize(
    ("before", "now", "moved"),
    [
        pytest.param(use(0), measured(4.9), False, id="a little load comes to the card"),
        pytest.param(use(0), measured(5), True, id="a twentieth of the card comes"),
        pytest.param(use(0), measured(0.5, a=0.5), True, id="a container begins to use the card"),
        pytest.param(
            use(1, a=1), measured(3.4, a=3.4), False, id="more by less than a quarter of what was asked for"
        ),
        pytest.param(use(1, a=1), measured(3.5, a=3.5), True, id="more by a quarter of what was asked for"),
        pytest.param(use(8, a=8), measured(6, a=6), False, id="less by little"),
        pytest.param(use(8, a=8), measured(3, a=3), True, id="less by much"),
        pytest.param(use(8, a=4, b=4), measured(8, b=9), True, id="from one container to the other"),
        pytest.param(use(1, a=1), measured(1), True, id="nothing is left of what a container used"),
        pytest.param(use(1), measured(0), True, id="nothing is left of what the card used"),
        pytest.param(use(9, a=9), measured(10.5, a=10.5), True, id="past what was asked for"),
        pytest.param(use(11, a=11), measured(10, a=10), True, id="back to what was asked for"),
        pytest.param(use(11, a=11), measured(12, a=12), False, id="a little further past it"),
    ],
)
def test_the_status_follows_what_moved_far(before: ReportedUse, now: MeasuredUse, *, moved: bool) -> None:
    after = reported_use(before, now, MEMORY)
    assert after == (ReportedUse(cards=now.cards, containers=now.containers) if moved else before)


def test_who_hovers_at_what_was_asked_for_is_told_of_once() -> None:
    above, below = measured(11, a=11), replace(measured(9.75, a=9.75), exceeded_lately=frozenset({A}))
    reported = reported_use(use(9, a=9), above, MEMORY)
    assert reported_use(reported, below, MEMORY) == reported
    assert reported_use(reported, above, MEMORY) == reported
    over = replace(below, exceeded_lately=frozenset())
    assert reported_use(reported, over, MEMORY).containers == over.containers


def test_a_card_of_which_nothing_can_be_told_keeps_its_figures() -> None:
    before = ReportedUse(cards={"GPU-0": 8 * GIB, "GPU-1": GIB}, containers={A: 8 * GIB})
    now = MeasuredUse(cards={"GPU-1": 50 * GIB}, requested=ASKED)
    after = reported_use(before, now, MEMORY)
    assert (after.cards, after.containers) == ({"GPU-0": 8 * GIB, "GPU-1": 50 * GIB}, {A: 8 * GIB})


sizes = st.integers(0, 100 * GIB)


@given(first=sizes, second=sizes, container=sizes)
def test_what_was_reported_is_not_reported_again(first: int, second: int, container: int) -> None:
    before = ReportedUse(cards={"GPU-0": first // MIB * MIB})
    now = MeasuredUse(cards={"GPU-0": second}, containers={A: container}, requested=ASKED)
    once = reported_use(before, now, MEMORY)
    assert reported_use(once, now, MEMORY) == once
    assert second - once.cards["GPU-0"] < 5 * GIB


def share(name: str, used: str) -> Json:
    owner = {"namespace": "default", "name": name, "uid": f"uid-{name}", "container": "main"}
    return {**owner, "units": 4, "usedMemory": used}


def test_a_status_is_read_as_it_was_written() -> None:
    shares = [share("a", "3Gi"), share("b", "?")]
    card = {
        "index": 0,
        "uuid": "GPU-0",
        "memory": "16Gi",
        "units": 16,
        "usedMemory": "3500Mi",
        "pods": shares,
    }
    status = share_node(status={"cards": [card]}).status
    assert recorded_use(status) == ReportedUse(cards={"GPU-0": 3500 * MIB}, containers={A: 3 * GIB})


def condition(now: MeasuredUse | None, scope: str = "Containers") -> tuple[str, str, str]:
    spec = share_node(measurement={"scope": scope}).spec
    reported = ReportedUse(cards=now.cards, containers=now.containers) if now else use(0)
    (state,) = excess_conditions(spec, now, reported)
    return state.status, state.reason, state.message


def test_the_condition_names_who_uses_more_than_he_asked_for() -> None:
    status, reason, message = condition(measured(40, a=11.5, b=20))
    assert (status, reason) == ("True", "RequestExceeded")
    assert message.startswith(
        "container main of pod default/a uses 11776Mi of card GPU-0 and asked for 10Gi; other pods"
    )
    assert condition(measured(30, a=10, b=20))[:2] == ("False", "WithinRequests")


def test_what_is_not_known_is_said() -> None:
    hung = MeasuredUse(problem=Problem("DriverHung", "wait for it"))
    assert condition(hung) == ("Unknown", "DriverHung", "wait for it")
    assert condition(None)[:2] == ("Unknown", "NotMeasured")


@pytest.mark.parametrize("scope", [MeasurementScope.OFF, MeasurementScope.CARDS])
def test_where_containers_are_not_measured_there_is_no_condition(scope: MeasurementScope) -> None:
    assert excess_conditions(share_node(measurement={"scope": scope}).spec, measured(1), use(1)) == []


def test_many_are_not_all_named() -> None:
    keys = [A._replace(container=f"c{number:02}") for number in range(13)]
    now = MeasuredUse(containers=dict.fromkeys(keys, 2), requested=dict.fromkeys(keys, 1))
    assert "container c09" in condition(now)[2]
    assert "container c10" not in condition(now)[2]
    assert "; and 3 more" in condition(now)[2]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(use(9, a=9), use(11, a=11), [("a", "MemoryExceeded", True)], id="begins"),
        pytest.param(use(11, a=11), use(20, a=20), [], id="goes on"),
        pytest.param(use(11, a=11), use(9, a=9), [("a", "MemoryWithinRequest", False)], id="ends"),
        pytest.param(use(0), use(9, a=9), [], id="within the request"),
    ],
)
def test_an_excess_is_told_when_it_begins_and_when_it_ends(
    before: ReportedUse, now: ReportedUse, expected: list[tuple[str, str, bool]]
) -> None:
    events = excess_events(before, now, ASKED)
    assert [(event.pod.name, event.reason, event.warning) for event in events] == expected


def test_a_pod_that_is_gone_is_not_told_that_it_is_within_its_request() -> None:
    assert excess_events(use(11, a=11), use(0), {B: GIB}) == []
