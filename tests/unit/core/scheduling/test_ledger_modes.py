"""The ledger in all modes of sharing, and over changes of mode."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import GI, RESOURCE, asked, pod_update, reference, share_node

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.modes.table import MODES, mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import parse_unit
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.holder import Holder
from gpushare_core.scheduling.objects.share_node import ShareNode


def used(ledger: Ledger) -> list[int]:
    node = ledger.node("n1")
    return [card.allocated for card in node.cards()] if node else []


def slices(name: str = "n1", *, cards: int = 3) -> ShareNode:
    return share_node(name, *[2] * cards, mode=MODES["Slices"], unit="1/2 card")


def test_a_request_of_slices_reserves_one_on_each_of_distinct_cards() -> None:
    ledger = Ledger()
    ledger.set_share_node(slices())
    first = ledger.reserve(reference("a"), node="n1", request=asked(2, ResourceClass.SLICE))
    second = ledger.reserve(reference("b"), node="n1", request=asked(3, ResourceClass.SLICE))
    assert first.shares == {"n1-0": 1, "n1-1": 1}
    assert second.shares == {"n1-0": 1, "n1-1": 1, "n1-2": 1}
    with pytest.raises(DoesNotFitError, match="needs 2 cards with a free slice, has 1"):
        ledger.reserve(reference("c"), node="n1", request=asked(2, ResourceClass.SLICE))


def test_what_a_node_serves_is_indexed_by_its_mode_alone() -> None:
    heard = HeardChanges()
    ledger, room = Ledger(heard), heard.rooms
    ledger.set_share_node(share_node("n1"))
    ledger.set_share_node(slices())
    assert dict(ledger.greatest[RESOURCE]) == {}
    assert dict(ledger.greatest[GPUSHARE.slice_resource]) == {"n1": 3}
    assert room == [(RESOURCE, 16), (GPUSHARE.slice_resource, 3)]


def test_a_lost_bind_is_not_taken_up_in_another_mode() -> None:
    ledger = Ledger()
    ledger.set_share_node(slices())
    ledger.reserve(reference("a"), node="n1", request=asked(2, ResourceClass.SLICE))
    ledger.reservations.abandon("uid-a", now=0.0)
    ledger.set_share_node(share_node("n1", 1, 1, mode=MODES["Exclusive"], unit="1 card"))
    with pytest.raises(DoesNotFitError, match="already holds"):
        ledger.reserve(reference("a"), node="n1", request=asked(2, ResourceClass.SLICE))


@given(
    st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30),
    st.sampled_from(["Slices", "Exclusive"]),
)
def test_no_card_is_over_committed_and_none_given_twice_to_a_pod(
    steps: list[tuple[int, bool]], mode: str
) -> None:
    """Pods come, each asking for some cards, and go."""
    ledger, sharing = Ledger(), MODES[mode]
    size, unit = (2, "1/2 card") if mode == "Slices" else (1, "1 card")
    ledger.set_share_node(share_node("n1", *[size] * 4, mode=sharing, unit=unit))
    running: list[str] = []
    for number, (amount, ends) in enumerate(steps):
        fits = ledger.greatest[GPUSHARE.resource_name(sharing.resource)]["n1"] >= amount
        try:
            held = ledger.reserve(reference(f"p{number}"), node="n1", request=asked(amount, sharing.resource))
        except DoesNotFitError:
            assert not fits
        else:
            assert fits
            assert len(held.shares) == len(held.cards) == amount
            running.append(held.uid)
        if ends and running:
            ledger.drop_pod(running.pop(0))
        node = ledger.node("n1")
        assert node
        assert all(0 <= card.allocated <= card.units for card in node.cards())
    for uid in running:
        ledger.drop_pod(uid)
    assert ledger.greatest[GPUSHARE.resource_name(sharing.resource)]["n1"] == 4


@pytest.mark.parametrize(
    ("unit", "node_unit", "units", "least"),
    [
        pytest.param("1/2 card", "1Gi", 16, 8, id="a slice on a card that serves memory now"),
        pytest.param("1 card", "1/2 card", 2, 2, id="a whole card on one that is cut"),
        pytest.param("8Gi", "1/4 card", 4, 2, id="memory on a card that is cut"),
        pytest.param("1/2 card", "1/4 card", 4, 2, id="a greater slice"),
    ],
)
def test_units_of_another_mode_never_count_for_less(
    unit: str, node_unit: str, units: int, least: int
) -> None:
    """Also where the status is there before the annotation, and where the mode changes under the pod."""
    mode = mode_serving(parse_unit(node_unit).resource)
    node = share_node("n1", units, units, mode=mode, unit=node_unit)
    early, late = Ledger(), Ledger()
    early.set_pod(pod_update("a", unit=unit, c0=1))
    early.set_share_node(node)
    late.set_share_node(node)
    late.set_pod(pod_update("a", unit=unit, c0=1))
    assert used(early)[0] >= least
    assert used(late) == used(early)
    assert used(early)[1] == 0


def test_units_of_another_mode_are_recounted_when_the_mode_comes_back() -> None:
    ledger = Ledger()
    ledger.set_share_node(slices())
    ledger.set_pod(pod_update("a", unit="1/2 card", c0=1))
    ledger.set_share_node(share_node("n1"))
    ledger.set_share_node(slices())
    assert used(ledger) == [1, 0, 0]


UNITS = [("1Gi", 16), ("2Gi", 8), ("1/2 card", 2), ("1/3 card", 3), ("1 card", 1)]
"""Units, and how many of them a card of 16Gi has."""
STEPS = st.tuples(st.sampled_from(["change", "bind", "leave", "drop"]), st.integers(0, 5))


def in_unit(unit: str, units: int) -> ShareNode:
    return share_node("n1", *[units] * 3, mode=mode_serving(parse_unit(unit).resource), unit=unit)


@given(st.lists(STEPS, max_size=40))
def test_changes_of_mode_under_pods_never_let_two_classes_on_a_card_nor_too_much(
    steps: list[tuple[str, int]],
) -> None:
    ledger, node = Ledger(), in_unit(*UNITS[0])
    ledger.set_share_node(node)
    running: list[Holder] = []
    for moment, (step, number) in enumerate(steps):
        if step == "change":
            node = in_unit(*UNITS[number % len(UNITS)])
            ledger.set_share_node(node)
        elif step == "bind":
            ((name, resource),) = node.resources.items()
            request = asked(number + 1, resource)
            fits = ledger.greatest[name]["n1"] > number
            try:
                running.append(ledger.reserve(reference(f"p{moment}"), node="n1", request=request))
                assert fits
            except DoesNotFitError:
                assert not fits
        elif running:
            uid = running.pop(number % len(running)).uid
            ledger.drop_pod(uid) if step == "drop" else ledger.pod_deleted(uid, now=float(moment))
        for card in node.cards:
            assert_right([held for held in running if held.units_of(card.uuid)], card.uuid)
    for held in running:
        ledger.drop_pod(held.uid)
    ledger.free_unreleased(now=1000.0)
    assert used(ledger) == [0, 0, 0]


def assert_right(holders: list[Holder], card: str) -> None:
    meanings = [(held.unit_meaning, held.units_of(card)) for held in holders]
    assert len({meaning[0] for meaning, _ in meanings if meaning}) <= 1
    parts = [
        units * meaning[1] / (16 * GI) if meaning[0] is ResourceClass.MEMORY else units / meaning[1]
        for meaning, units in meanings
        if meaning
    ]
    assert sum(parts) < 1.001
