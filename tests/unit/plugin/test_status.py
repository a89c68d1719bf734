"""The status says who has what on every card."""

from datetime import UTC, datetime

import pytest
from tests.samples.plugin import GIB, container, layout, pod, share_node

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.report.conditions import AnnotationState, RegistrationState, node_conditions
from gpushare_plugin.decide.report.status import node_status
from gpushare_plugin.decide.units.quantity_text import quantity_text

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)

A = pod("a", container("x", 4), container("y", 2))
HELD = [PodAllocation(A, {"x": {"GPU-0": 4}, "y": {"GPU-0": 2}}, {"GPU-0": 6})]


def conditions(node: GPUShareNode, *, registered: bool) -> list[ConditionState]:
    return node_conditions(
        node.spec,
        Offering(layout=layout()),
        RegistrationState(registered=registered),
        AnnotationState(pod_resources_available=True),
    )


def status_of(node: GPUShareNode, *, now: datetime = NOW) -> NodeStatus:
    return node_status(
        node, Offering(layout=layout(reserved=GIB)), HELD, conditions(node, registered=True), now=now
    )


def test_every_card_shows_who_has_what() -> None:
    status = status_of(share_node())
    assert status.summary == "6/15 0/15"
    assert status.card_summaries == [
        "0: 6 of 15 units held, healthy, 16Gi (GPU-0)",
        "1: 0 of 15 units held, healthy, 16Gi (GPU-1)",
    ]
    assert (status.memory_unit, status.observed_generation) == ("1Gi", 1)
    assert (status.units.total, status.units.allocated) == (30, 6)
    assert (status.memory.total, status.memory.allocated) == ("30Gi", "6Gi")
    first = status.cards[0]
    assert (first.uuid, first.memory, first.units, first.allocated_units) == ("GPU-0", "16Gi", 15, 6)
    assert [(pod.name, pod.container, pod.units) for pod in first.pods] == [("a", "x", 4), ("a", "y", 2)]


def test_nothing_changes_when_only_time_passes() -> None:
    written = share_node(status=status_of(share_node()).to_json())
    assert status_of(written, now=LATER) == written.status


def test_a_condition_that_turns_gets_the_time_at_which_it_did() -> None:
    written = share_node(status=status_of(share_node()).to_json())
    lost = conditions(written, registered=False)
    status = node_status(written, Offering(layout=layout()), HELD, lost, now=LATER)
    times = {condition.type: condition.last_transition_time for condition in status.conditions}
    assert times["Registered"] == "2026-11-21T13:00:00Z"
    assert times["CardsHealthy"] == "2026-11-21T12:00:00Z"


def test_a_node_that_offers_nothing_shows_no_cards() -> None:
    status = node_status(share_node(), Offering(), [], [], now=NOW)
    assert (status.cards, status.summary, status.memory_unit, status.units.total) == ([], "", "", 0)


@pytest.mark.parametrize(
    ("size", "like", "expected"),
    [
        pytest.param(16 * GIB, "1Gi", "16Gi", id="binary"),
        pytest.param(32 * 10**9, "1Gi", "32G", id="decimal memory, binary unit"),
        pytest.param(0, "1Gi", "0", id="nothing"),
        pytest.param(1500 * 10**6, "1M", "1500M", id="in the unit's family"),
        pytest.param(17, "1Gi", "17", id="bytes"),
    ],
)
def test_quantities_are_exact_and_short(size: int, like: str, expected: str) -> None:
    assert quantity_text(size, like) == expected
