"""What is offered follows from what is asked, what is there, and what pods hold."""

from typing import Any

import pytest
from tests.samples.plugin import annotation, assigned, by_name, card, container, layout, pod, share_node

from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.offering import NodeSnapshot, Offering, decide_offering, is_draining
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.devices.card import PhysicalCard

CARDS = (card(0), card(1))
GI = MemoryUnit.parse("1Gi")


def decided(
    unit: str = "1Gi",
    *pods: Pod,
    held: AssignedDevices | None = None,
    last: Layout | None = None,
    cards: tuple[PhysicalCard, ...] | None = CARDS,
    status: dict[str, Any] | None = None,
    limit: int = 4 * 2**20,
    **spec: Any,
) -> Offering:
    return decide_offering(
        NodeSnapshot(
            share_node=share_node(unit, status=status, **spec),
            cards=cards,
            last_layout=last,
            assigned=held or AssignedDevices(),
            pods=by_name(*pods),
            limit=limit,
        )
    )


HELD = assigned(a={"main": [16, 17]})
HOLDER = pod("a", container(units=2), annotation=annotation({"main": {"GPU-1": 2}}))


def test_a_first_start_offers_what_is_asked_less_what_is_reserved() -> None:
    offering = decided(reservedMemory="512Mi")
    assert offering == Offering(layout=layout(reserved=2**29))


@pytest.mark.parametrize(
    "node", [pytest.param(None, id="no GPUShareNode"), pytest.param(share_node(mode="Off"), id="mode Off")]
)
def test_a_node_that_is_not_shared_offers_nothing(node: object) -> None:
    snapshot = NodeSnapshot(share_node=node, cards=CARDS, last_layout=layout(), assigned=HELD, pods={})  # type: ignore[arg-type]
    assert decide_offering(snapshot) == Offering()


def test_a_change_of_unit_waits_for_the_pods() -> None:
    assert decided("512Mi", HOLDER, held=HELD, last=layout()) == Offering(
        layout=layout(), blocked_by=("default/a",)
    )
    assert decided("512Mi", last=layout()) == Offering(layout=layout(unit="512Mi"))


def test_a_change_of_unit_waits_for_the_pods_over_a_restart() -> None:
    status: dict[str, Any] = {
        "memoryUnit": "1Gi",
        "cards": [{"index": i, "uuid": f"GPU-{i}", "memory": "16Gi", "units": 16} for i in range(2)],
    }
    offering = decided("512Mi", HOLDER, held=HELD, status=status)
    assert offering.layout
    assert (offering.layout.unit, offering.blocked_by) == (GI, ("default/a",))


def test_a_change_of_unit_waits_for_the_pods_of_a_policy_that_was_deleted_and_applied_anew() -> None:
    assert decided("512Mi", HOLDER, held=HELD).blocked_by == ("default/a",)


def test_cards_change_at_once_but_never_under_a_pod() -> None:
    more = (card(0, memory=32 * 2**30), card(1), card(2))
    assert decided(cards=more, last=layout()).layout == layout(*more)
    kept = decided("1Gi", HOLDER, held=HELD, cards=more, last=layout()).layout
    assert kept == layout(card(0), card(1), card(2))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"mode": "Mixed"}, "InvalidUnit", id="mixed with slices of no size"),
        pytest.param({"mode": "Slices"}, "InvalidUnit", id="slices of no size"),
        pytest.param({"memoryUnit": "a lot"}, "InvalidUnit", id="unit"),
        pytest.param({"memoryUnit": "0Gi"}, "InvalidUnit", id="no unit at all"),
    ],
)
def test_what_is_not_served_yet_is_said_and_pods_keep_what_they_have(
    spec: dict[str, Any], reason: str
) -> None:
    unit = str(spec.pop("memoryUnit", "1Gi"))
    free = decided(unit, last=layout(), **spec)
    assert free.problem
    assert (free.layout, free.problem.reason) == (None, reason)
    held = decided(unit, HOLDER, held=HELD, last=layout(), cards=None, **spec)
    assert (held.layout, held.blocked_by) == (layout(), ("default/a",))


def test_a_unit_that_is_too_fine_leaves_the_last_one_in_force() -> None:
    offering = decided("1Mi", last=layout(), limit=1000)
    assert offering.layout == layout()
    assert offering.finest_unit
    assert (offering.finest_unit.text, offering.desired_units) == ("513Mi", 32768)


def test_a_unit_that_is_too_fine_from_the_start_offers_nothing() -> None:
    offering = decided("1Mi", limit=1000)
    assert (offering.layout, offering.finest_unit is None) == (None, False)


def test_a_unit_that_is_too_fine_leaves_the_recorded_one_in_force_after_a_restart() -> None:
    assert decided("1Mi", limit=1000, status={"memoryUnit": "1Gi"}).layout == layout()


TWO_CARDS = 16 * 16 * 2
"""Bytes of a list of two cards in units of 1Gi: a third one has no room in it."""


def test_one_card_too_many_is_left_out() -> None:
    more = (card(2), card(0), card(1))
    offering = decided(cards=more, last=layout(), limit=TWO_CARDS)
    assert offering.layout == layout()
    assert [left_out.uuid for left_out in offering.left_out] == ["GPU-2"]
    assert offering.finest_unit
    assert (offering.finest_unit.text, offering.desired_units) == ("2Gi", 48)


def test_one_card_too_many_is_left_out_while_pods_hold_units_and_nothing_is_recorded() -> None:
    found = (card(2), card(0), card(1))
    offering = decided("1Gi", HOLDER, held=HELD, cards=found, limit=TWO_CARDS, status={"memoryUnit": "1Gi"})
    assert offering.layout
    assert offering.layout.card_of(16).uuid == "GPU-1"  # type: ignore[union-attr]
    assert len(offering.left_out) == 1


def test_what_is_told_of_a_coming_unit_is_not_that_the_one_in_force_is_too_fine() -> None:
    """The scheduler would take the coming one for refused, and send pods that the draining node refuses."""
    found = (*CARDS, card(2))
    status = {"memoryUnit": "1Gi"}
    offering = decided("2Gi", HOLDER, held=HELD, cards=found, limit=TWO_CARDS, status=status)
    assert (offering.blocked_by, offering.refused_unit) == (("default/a",), None)
    assert offering.layout == layout()
    assert is_draining(share_node("2Gi").spec, offering)


def test_cards_that_come_with_a_unit_too_fine_are_taken_as_far_as_they_fit() -> None:
    more = (card(0), card(1), card(2, memory=4 * 2**30), card(3))
    offering = decided("1Mi", cards=more, last=layout(), limit=TWO_CARDS + 4 * 16)
    assert offering.layout == layout(*more[:3])
    assert [left_out.uuid for left_out in offering.left_out] == ["GPU-3"]
