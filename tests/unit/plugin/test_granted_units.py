"""What IDs in use mean follows from the kubelet's checkpoint and by annotations."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import (
    GIB,
    NODE,
    annotation,
    assigned,
    by_name,
    card,
    container,
    layout,
    pod,
    share_node,
    stored,
)

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import CardPart, MemoryUnit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.granted_units import (
    ContradictionError,
    GrantedUnits,
    agrees,
    annotated_granted_units,
    granted_cards,
    granted_unit,
    placed_cards,
    pods_without_evidence,
    stored_granted_units,
)
from gpushare_plugin.decide.offer.offering import NodeSnapshot, Offering, decide_offering
from gpushare_plugin.decide.report.status import node_status
from gpushare_plugin.decide.units.layout import GONE, Layout, lay_out
from gpushare_plugin.devices.card import PhysicalCard

NOW = datetime(2026, 11, 21, tzinfo=UTC)
GI, HALF = MemoryUnit.parse("1Gi"), MemoryUnit.parse("512Mi")


def grant(name: str, low: int, high: int, *, memory: int = 0, size: int = 0, units: int = 0) -> GrantedUnits:
    """``memory`` of the units and ``size`` of the card are in GiB."""
    return GrantedUnits(
        holder="default/a",
        card=name,
        lowest=low,
        highest=high,
        units=units or high - low + 1,
        memory=memory * 1024,
        card_memory=size * 1024,
        container="main",
    )


def with_checkpoint(before: Layout, **pods: dict[str, list[int]]) -> AssignedDevices:
    """The same pods as PodResources and the checkpoint show them."""
    listed = assigned(**pods)
    identified = {
        name: replace(assignment, uid=f"uid-{name.name}") for name, assignment in listed.pods.items()
    }
    return AssignedDevices(identified, stored(before, **pods))


def decided(
    held: AssignedDevices, *pods: Pod, cards: tuple[PhysicalCard, ...], unit: str = "1Gi"
) -> Offering:
    """What is offered where nothing is recorded."""
    return decide_offering(
        NodeSnapshot(
            share_node=share_node(unit), cards=cards, last_layout=None, assigned=held, pods=by_name(*pods)
        )
    )


def test_the_checkpoint_tells_card_and_size() -> None:
    (seen,) = stored_granted_units(with_checkpoint(layout(), a={"main": [17, 16]}))
    assert seen == replace(grant("GPU-1", 16, 17, memory=2, size=16), index=1, unit=GI)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            annotation({"main": {"GPU-1": 2}}), [replace(grant("GPU-1", 3, 4), unit=GI)], id="it says so"
        ),
        pytest.param(annotation({"main": {"GPU-1": 4}}), [], id="another amount"),
        pytest.param(annotation({"main": {"GPU-1": 2}}, node="gpu-2"), [], id="another node"),
        pytest.param(annotation({"other": {"GPU-1": 2}}), [], id="another container"),
        pytest.param(annotation({"main": {"GPU-1": 2}}, uid="uid-b"), [], id="a copy of another pod's"),
        pytest.param("not ours", [], id="not an allocation"),
        pytest.param(None, [], id="none"),
    ],
)
def test_where_the_checkpoint_is_silent_annotations_tell_the_card(
    text: str | None, expected: list[GrantedUnits]
) -> None:
    pods = by_name(pod("a", container(units=2), annotation=text))
    seen = annotated_granted_units(assigned(a={"main": [3, 4]}), pods, NODE)
    assert seen == expected
    assert pods_without_evidence(assigned(a={"main": [3, 4]}), seen) == ([] if expected else ["default/a"])


def test_what_the_checkpoint_tells_is_not_asked_of_annotations() -> None:
    one = pod("a", container(units=2), annotation=annotation({"main": {"GPU-0": 2}}))
    assert annotated_granted_units(with_checkpoint(layout(), a={"main": [16, 17]}), by_name(one), NODE) == []


@pytest.mark.parametrize(
    ("candidates", "granted", "expected"),
    [
        pytest.param((GI, HALF), [grant("x", 0, 3, memory=4)], GI, id="the first that fits"),
        pytest.param((HALF, GI), [grant("x", 0, 3, memory=4)], GI, id="the second fits"),
        pytest.param((None, HALF), [grant("x", 0, 3)], HALF, id="memory unknown"),
        pytest.param((None, HALF), [grant("x", 0, 3, memory=8)], MemoryUnit.parse("2048Mi"), id="told"),
    ],
)
def test_the_unit_is_one_in_which_everybody_holds_memory(
    candidates: tuple[MemoryUnit | None, ...], granted: list[GrantedUnits], expected: MemoryUnit
) -> None:
    assert granted_unit(candidates, granted) == expected


HALVES, QUARTERS = CardPart(ResourceClass.SLICE, 2), CardPart(ResourceClass.SLICE, 4)


def granted_slice(unit: CardPart | None, memory: int) -> GrantedUnits:
    """One slice of a card of 16 GiB, in GiB."""
    seen = grant("x", 0, 0, memory=memory, size=16)
    return replace(seen, resource=ResourceClass.SLICE, unit=unit)


@pytest.mark.parametrize(
    ("candidates", "seen", "expected"),
    [
        pytest.param((QUARTERS,), granted_slice(HALVES, 4), HALVES, id="told, half of the card reserved"),
        pytest.param((HALVES,), granted_slice(None, 4), QUARTERS, id="not told: by the memory"),
    ],
)
def test_what_a_slice_was_is_told_by_its_container_and_not_by_its_memory(
    candidates: tuple[CardPart, ...], seen: GrantedUnits, expected: CardPart
) -> None:
    """Also by what this version's predecessor told, which reserved nothing of slices."""
    assert granted_unit(candidates, [seen]) == expected


def test_units_of_two_sizes_are_a_contradiction() -> None:
    with pytest.raises(ContradictionError, match="default/a hold units of different sizes"):
        granted_unit((GI,), [grant("x", 0, 3, memory=4), grant("y", 4, 4, memory=2)])


@pytest.mark.parametrize(
    ("granted", "expected"),
    [
        pytest.param([grant("GPU-1", 20, 27, size=16)], [("GPU-1", 16, 16)], id="where it usually lies"),
        pytest.param(
            [grant("GPU-0", 0, 3, size=16), grant("GPU-1", 18, 20, size=16)],
            [("GPU-0", 0, 16), ("GPU-1", 16, 16)],
            id="one beside the other",
        ),
        pytest.param(
            [grant("GPU-0", 5, 5, size=16), grant("GPU-1", 17, 17, size=16)],
            [("GPU-0", 0, 16), ("GPU-1", 16, 16)],
            id="room is left for the second",
        ),
        pytest.param(
            [grant("GPU-0", 0, 1, size=8), grant("GPU-1", 12, 23, size=16)],
            [("GPU-0", 0, 8), ("GPU-1", 8, 16)],
            id="not where it usually lies",
        ),
        pytest.param(
            [grant("GPU-0", 0, 1), grant("GPU-1", 10, 12)],
            [("GPU-0", 0, 10), ("GPU-1", 10, 16)],
            id="nobody told the size: as much as there is room for",
        ),
        pytest.param([grant("GPU-9", 4, 6)], [("GPU-9", 3, 3)], id="a card that is gone, of unknown size"),
    ],
)
def test_each_card_is_placed_around_its_units_in_use(
    granted: list[GrantedUnits], expected: list[tuple[str, int, int]]
) -> None:
    placed = placed_cards(granted_cards(granted, (card(0), card(1)), GI), GI)
    for physical, first in placed:
        told = [seen for seen in granted if seen.card == physical.uuid]
        assert all(
            first <= seen.lowest <= seen.highest < first + GI.units_in(physical.memory) for seen in told
        )
    if expected[0][0] != "GPU-9":
        assert [
            (physical.uuid, first, GI.units_in(physical.memory)) for physical, first in placed
        ] == expected


def test_units_of_two_cards_that_lie_across_each_other_are_a_contradiction() -> None:
    across = [grant("GPU-0", 0, 9, units=2), grant("GPU-1", 5, 6)]
    with pytest.raises(ContradictionError, match="card GPU-1 are held that lie between those of card GPU-0"):
        placed_cards(granted_cards(across, (card(0), card(1)), GI), GI)
    close = [grant("GPU-0", 0, 9, size=16), grant("GPU-1", 12, 13, size=16)]
    with pytest.raises(ContradictionError, match="have no room"):
        placed_cards(granted_cards(close, (card(0), card(1)), GI), GI)


def test_a_card_that_is_gone_keeps_the_place_of_its_units() -> None:
    offering = decided(with_checkpoint(layout(), a={"main": [16, 17]}), cards=(card(0),))
    assert offering.layout
    gone = offering.layout.cards[1]
    assert (gone.uuid, gone.first, gone.units, gone.card.index) == ("GPU-1", 16, 16, 1)
    assert (gone.card.healthy, gone.card.reason) == (False, GONE)


def test_without_any_answer_of_the_kubelet_a_promise_is_reason_to_wait() -> None:
    waiting = pod("a", container(units=2), annotation=annotation({"main": {"GPU-1": 2}}))
    snapshot = NodeSnapshot(
        share_node=share_node(),
        cards=(card(0), card(1)),
        last_layout=None,
        assigned=AssignedDevices(),
        assigned_known=False,
        pods=by_name(waiting),
    )
    assert decide_offering(snapshot).layout_unknown
    assert decide_offering(replace(snapshot, assigned_known=True)).layout == layout()
    assert decide_offering(replace(snapshot, pods={})).layout == layout()


def test_without_any_answer_of_the_kubelet_a_pod_that_asks_for_units_is_reason_to_wait() -> None:
    """Somebody else bound it, and nothing is recorded or annotated: it may hold units of any card."""
    snapshot = NodeSnapshot(
        share_node=share_node(),
        cards=(card(0), card(1)),
        last_layout=None,
        assigned=AssignedDevices(),
        assigned_known=False,
        pods=by_name(pod("a", container(units=2))),
    )
    assert decide_offering(snapshot).layout_unknown
    assert decide_offering(replace(snapshot, assigned_known=True)).layout == layout()
    assert decide_offering(replace(snapshot, pods=by_name(pod("plain", container())))).layout == layout()


SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=5)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Layout, dict[str, dict[str, list[int]]], tuple[PhysicalCard, ...]]:
    """A layout, who holds what of it, and the cards that are found afterwards."""
    before = lay_out(
        [card(index, memory=size * GIB) for index, size in enumerate(draw(SIZES))], GI, reserved=0
    )
    pods = {
        f"pod-{placed.uuid}-{number}": {"main": numbers}
        for placed in before.cards
        for number, numbers in enumerate(draw(_holders(placed.numbers)))
    }
    found = [card(index, memory=size * GIB) for index, size in enumerate(draw(SIZES))]
    return before, pods, tuple(draw(st.permutations(found)))


def _holders(numbers: range) -> st.SearchStrategy[list[list[int]]]:
    cuts = st.lists(st.sampled_from(list(numbers)), unique=True, max_size=6)
    return cuts.map(lambda chosen: [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]]).map(
        lambda parts: [sorted(part) for part in parts if part]
    )


@given(histories())
def test_no_layout_ever_contradicts_the_checkpoint(
    history: tuple[Layout, dict[str, dict[str, list[int]]], tuple[PhysicalCard, ...]],
) -> None:
    before, pods, found = history
    held = with_checkpoint(before, **pods)
    offering = decided(held, cards=found)
    assert offering.layout is not None
    assert agrees(offering.layout, stored_granted_units(held))
    assert {physical.uuid for physical in found} <= {placed.uuid for placed in offering.layout.cards}
    assert list(_overlaps(offering.layout)) == []


@given(histories())
def test_no_layout_ever_contradicts_the_annotations(
    history: tuple[Layout, dict[str, dict[str, list[int]]], tuple[PhysicalCard, ...]],
) -> None:
    before, holders, found = history
    held = assigned(**holders)
    pods = [
        pod(
            name,
            container(units=len(holdings["main"])),
            annotation=annotation({"main": before.shares(holdings["main"])}),
        )
        for name, holdings in holders.items()
    ]
    offering = decided(held, *pods, cards=found)
    assert offering.layout is not None
    assert agrees(offering.layout, annotated_granted_units(held, by_name(*pods), NODE))
    assert list(_overlaps(offering.layout)) == []


def _overlaps(made: Layout) -> Iterator[str]:
    taken: set[int] = set()
    for placed in made.cards:
        numbers = set(range(placed.first, placed.end))
        if numbers & taken:
            yield placed.uuid
        taken |= numbers


def halves(*cards: PhysicalCard) -> Layout:
    return lay_out(cards, CardPart(ResourceClass.SLICE, 2), reserved=0)


def test_without_a_record_slices_in_use_tell_mode_and_cards() -> None:
    """What is asked for now is another mode, and cards were added in front."""
    before = halves(card(1), card(2))
    held = with_checkpoint(before, a={"main": [1, 2]})
    made = decided(held, cards=(card(0), card(1), card(2))).layout
    assert made is not None
    assert (made.unit.text, made.shares([1, 2])) == ("1/2 card", {"GPU-1": 1, "GPU-2": 1})


def test_a_card_that_is_gone_keeps_the_room_of_all_its_slices() -> None:
    before = halves(card(0), card(1))
    made = decided(with_checkpoint(before, a={"main": [2]}), cards=(card(0),)).layout
    assert made is not None
    assert [(placed.uuid, placed.first, placed.units) for placed in made.cards] == [
        ("GPU-0", 0, 2),
        ("GPU-1", 2, 2),
    ]


def test_slices_of_two_sizes_are_a_contradiction() -> None:
    quarters = lay_out([card(0), card(1)], CardPart(ResourceClass.SLICE, 4), reserved=0)
    stored_both = {**stored(halves(card(0)), a={"main": [0]}), **stored(quarters, b={"main": [4]})}
    seen = stored_granted_units(AssignedDevices({}, stored_both))
    with pytest.raises(ContradictionError, match="hold units of different sizes"):
        granted_unit((), seen)


SLICE = GPUSHARE.slice_resource
THREE = (card(0), card(1), card(2))


def sliced(containers: dict[str, dict[str, int]], unit: str = "1/2 card") -> Pod:
    text = annotation(containers, unit=unit, resource=ResourceClass.SLICE)
    asking = [container(name, sum(shares.values()), SLICE) for name, shares in containers.items()]
    return pod("a", *asking, annotation=text)


def after_restart(held: AssignedDevices, one: Pod, recorded: Layout | None) -> Offering:
    """Without checkpoint."""
    node = share_node(mode="Slices", slicesPerCard=2)
    if recorded:
        node = msgspec.structs.replace(
            node, status=node_status(node, Offering(layout=recorded), [], [], now=NOW)
        )
    return decide_offering(
        NodeSnapshot(share_node=node, cards=THREE, last_layout=None, assigned=held, pods=by_name(one))
    )


def test_a_record_by_which_several_slices_lie_on_other_cards_is_not_believed() -> None:
    held, one = assigned(a={"main": [2, 4]}), sliced({"main": {"GPU-1": 1, "GPU-2": 1}})
    right, wrong = halves(*THREE), halves(card(2), card(0), card(1))
    assert after_restart(held, one, right).layout == right
    refused = after_restart(held, one, wrong)
    assert (refused.layout, refused.postponed and refused.postponed.reason) == (None, "LayoutUnknown")


def test_a_record_by_which_slices_have_another_size_is_not_believed() -> None:
    """As in a backup; on the first card the numbers do not tell."""
    quarters = lay_out(THREE, CardPart(ResourceClass.SLICE, 4), reserved=0)
    refused = after_restart(assigned(a={"main": [0]}), sliced({"main": {"GPU-0": 1}}), quarters)
    assert (refused.layout, refused.postponed and refused.postponed.reason) == (None, "LayoutUnknown")


def test_what_a_container_was_told_speaks_for_its_container_alone() -> None:
    """Nobody tells which of the other container's units lies on which card."""
    held = assigned(a={"x": [0], "y": [2, 4]})
    one = sliced({"x": {"GPU-0": 1}, "y": {"GPU-1": 1, "GPU-2": 1}})
    assert pods_without_evidence(held, annotated_granted_units(held, by_name(one), NODE)) == ["default/a"]
