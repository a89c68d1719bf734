"""Mode Mixed in the plugin's decisions: blocks of units, locks, which card a class gets, granted units."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import (
    GIB,
    annotation,
    assigned,
    by_name,
    card,
    container,
    environment,
    ids,
    name_of,
    pod,
    share_node,
)

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import UnitFields, parse_node_unit
from gpushare_plugin.decide.admit.pod_being_admitted import candidates_by_list
from gpushare_plugin.decide.admit.preferred_allocation import ContainerRequest, NothingFitsError, choose_units
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.offer.device_list import device_lists
from gpushare_plugin.decide.offer.granted_units import agrees, stored_granted_units
from gpushare_plugin.decide.offer.offering import NodeSnapshot, Offering, decide_offering
from gpushare_plugin.decide.report.status import node_status
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, lay_out, recorded_layout
from gpushare_plugin.decide.units.locks import locks_of_units
from gpushare_plugin.decide.units.unit_ids import UnitSet
from gpushare_plugin.devices.card import PhysicalCard

NOW = datetime(2026, 11, 21, tzinfo=UTC)
MEMORY, SLICE, CARD = ResourceClass
UNIT = NODE_MODES["Mixed"].unit(UnitFields("1Gi", 2))
TWO = lay_out([card(0), card(1)], UNIT, reserved=0)
"""GPU-0: 0 to 15 are memory, 16 and 17 slices, 18 is the card. GPU-1: the same from 19 on."""


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(0, ("GPU-0", MEMORY), id="the first unit of memory"),
        pytest.param(15, ("GPU-0", MEMORY), id="the last one"),
        pytest.param(16, ("GPU-0", SLICE), id="a slice"),
        pytest.param(18, ("GPU-0", CARD), id="the whole card"),
        pytest.param(19, ("GPU-1", MEMORY), id="the next card"),
        pytest.param(37, ("GPU-1", CARD), id="the last of all"),
        pytest.param(38, (None, None), id="none"),
    ],
)
def test_a_number_alone_tells_card_and_class(
    number: int, expected: tuple[str | None, ResourceClass | None]
) -> None:
    placed = TWO.card_of(number)
    assert (placed.uuid if placed else None, TWO.class_of(number)) == expected


def test_what_is_reserved_moves_no_block() -> None:
    reserving = lay_out([card(0), card(1)], UNIT, reserved=2 * GIB)
    assert [(placed.first, placed.units) for placed in reserving.of(MEMORY).cards] == [(0, 14), (19, 14)]
    assert [(placed.first, placed.units) for placed in reserving.of(SLICE).cards] == [(16, 2), (35, 2)]
    assert reserving.means_the_same(TWO)


def test_the_unit_is_read_back_from_the_status() -> None:
    assert UNIT.text == "1Gi, 1/2 card, 1 card"
    assert parse_node_unit(UNIT.text) == UNIT
    with pytest.raises(ValueError, match="not the units of a node"):
        parse_node_unit("1/2 card, 1Gi, 1 card")


def test_what_was_recorded_means_the_same_whatever_was_locked() -> None:
    status = node_status(share_node(), Offering(layout=TWO), [], [], locks={"GPU-0": SLICE}, now=NOW)
    assert [card.units for card in status.cards] == [2, 16]
    assert TWO.means_the_same(recorded_layout(status))


def test_a_card_in_use_is_in_the_list_of_its_class_alone() -> None:
    sizes = {name: len(message) for name, message in lists({}).items()}
    locked = {name: len(message) for name, message in lists({"GPU-0": SLICE}).items()}
    slices, memory, cards = GPUSHARE.slice_resource, GPUSHARE.memory_resource, GPUSHARE.card_resource
    assert locked == {slices: sizes[slices], memory: sizes[memory] // 2, cards: sizes[cards] // 2}


def lists(locks: dict[str, ResourceClass]) -> dict[str, bytes]:
    return device_lists(TWO, GPUSHARE, locks)


def test_locks_follow_from_the_units_of_each_container() -> None:
    assert locks_of_units(TWO, [[0, 1], [35], []]) == {"GPU-0": MEMORY, "GPU-1": SLICE}


def chosen(
    resource: ResourceClass, units: int, locks: dict[str, ResourceClass], layout: Layout = TWO
) -> list[int]:
    request = ContainerRequest(units=units, pod_units=units, locks=locks)
    available = UnitSet(range(layout.end))
    _, numbers = choose_units(
        request, layout.of(resource), available=available, included=(), strategy=Strategy.BINPACK
    )
    return numbers


@pytest.mark.parametrize(
    ("resource", "units", "locks", "expected"),
    [
        pytest.param(MEMORY, 2, {}, [0, 1], id="a free card"),
        pytest.param(MEMORY, 2, {"GPU-1": MEMORY}, [19, 20], id="one of the class before a free one"),
        pytest.param(SLICE, 1, {"GPU-0": MEMORY}, [35], id="not one of another class"),
        pytest.param(SLICE, 2, {"GPU-1": SLICE}, [16, 35], id="a free one where it must"),
        pytest.param(CARD, 1, {"GPU-0": SLICE}, [37], id="the whole card"),
    ],
)
def test_a_class_is_given_units_of_its_own_cards_and_then_of_free_ones(
    resource: ResourceClass, units: int, locks: dict[str, ResourceClass], expected: list[int]
) -> None:
    assert sorted(chosen(resource, units, locks)) == expected


@pytest.mark.parametrize("resource", ResourceClass)
def test_cards_of_other_classes_are_never_given(resource: ResourceClass) -> None:
    other = next(other_class for other_class in ResourceClass if other_class is not resource)
    with pytest.raises(NothingFitsError):
        chosen(resource, 1, {"GPU-0": other, "GPU-1": other})


def test_units_of_two_classes_together_are_refused() -> None:
    with pytest.raises(UnusableUnitsError):
        environment(ids(0, 16), TWO, GPUSHARE)


def test_the_environment_of_a_slice_is_that_of_its_class() -> None:
    variables = environment(ids(17, 36), TWO, GPUSHARE)
    assert variables["GPUSHARE_UNIT"] == "1/2 card"
    assert variables["GPUSHARE_MEMORY_MIB"] == "8192,8192"


def test_the_pod_that_is_admitted_asks_for_what_the_kubelet_asks_for() -> None:
    """Two pods wait, each for one unit."""
    slices = pod("s", container(units=1, resource=GPUSHARE.slice_resource))
    memory = pod("m", container(units=1))
    waiting = by_name(slices, memory)
    devices = assigned(s={"main": []}, m={"main": []})
    found = candidates_by_list(devices, waiting, {}, 1, resource=GPUSHARE.memory_resource)
    assert [pod.name for pod in found] == [name_of("m")]


def entry(layout: Layout, container: str, numbers: list[int]) -> CheckpointEntry:
    resource = layout.class_of(numbers[0])
    assert resource
    variables = environment(ids(*numbers), layout, GPUSHARE)
    name = GPUSHARE.resource_name(resource)
    units = StoredUnits("uid-a", container, name, array("I", sorted(numbers)))
    return read_answer(units, variables)


SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=5)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Layout, AssignedDevices, tuple[PhysicalCard, ...]]:
    """A layout, what is held of it, each card in one class, and the cards that are found afterwards."""
    before = lay_out(
        [card(index, memory=size * GIB) for index, size in enumerate(draw(SIZES))], UNIT, reserved=0
    )
    held = {}
    for number, placed in enumerate(before.cards):
        numbers = before.of(draw(st.sampled_from(ResourceClass))).cards[number].numbers
        amount = draw(st.integers(0, 1 if before.class_of(numbers[0]) is not MEMORY else len(numbers)))
        if amount:
            held[f"c{placed.card.index}"] = [*numbers[len(numbers) - amount :]]
    entries = {name: entry(before, name, numbers) for name, numbers in held.items()}
    devices = assigned(a=held)
    known = {name: replace(assignment, uid="uid-a") for name, assignment in devices.pods.items()}
    found = [card(index, memory=size * GIB) for index, size in enumerate(draw(SIZES))]
    return before, AssignedDevices(known, {"uid-a": entries}), tuple(draw(st.permutations(found)))


@given(histories())
def test_no_layout_ever_contradicts_what_containers_were_told(
    history: tuple[Layout, AssignedDevices, tuple[PhysicalCard, ...]],
) -> None:
    """Nothing is recorded any more, and other cards are found."""
    _, held, found = history
    snapshot = NodeSnapshot(
        share_node=share_node(mode="Mixed", slicesPerCard=2),
        cards=found,
        last_layout=None,
        assigned=held,
        pods=by_name(pod("a", container(units=1), annotation=annotation())),
    )
    offering = decide_offering(snapshot)
    assert offering.layout is not None
    assert agrees(offering.layout, stored_granted_units(held))


def test_a_layout_with_the_units_in_another_class_contradicts() -> None:
    held = AssignedDevices(stored={"uid-a": {"main": entry(TWO, "main", [16])}})
    assert agrees(TWO, stored_granted_units(held))
    shifted = lay_out([card(0), card(1)], UNIT, reserved=0, places={"GPU-0": 2, "GPU-1": 40})
    assert not agrees(shifted, stored_granted_units(held))
