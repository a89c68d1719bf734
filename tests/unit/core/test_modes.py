"""What each mode makes of a request: how it lies on cards, what fits, and what a refusal says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.api.enums import Mode
from gpushare_core.placement.card_choice import Card, ChoiceReason, Strategy
from gpushare_core.placement.modes.sharing_mode import Room, SharingMode
from gpushare_core.placement.modes.table import (
    MEMORY,
    MODES,
    mode_serving,
    other_resource_reason,
    several_resources_reason,
)
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.placement.units import UnitFields

SLICES, CARDS_MODE = MODES["Slices"], MODES["Exclusive"]
EVERY_MODE = [pytest.param(mode, id=name) for name, mode in MODES.items()]
CARDS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 30), st.booleans()),
    max_size=8,
).map(lambda cards: [Card(f"GPU-{index}", index, *card) for index, card in enumerate(cards)])


def test_the_api_offers_every_mode() -> None:
    assert MODES.keys() <= set(Mode)


@pytest.mark.parametrize("mode", EVERY_MODE)
@given(present=CARDS, amount=st.integers(0, 24), strategy=st.sampled_from(Strategy))
def test_an_amount_fits_up_to_the_greatest_and_over_commits_no_card(
    mode: SharingMode, present: list[Card], amount: int, strategy: Strategy
) -> None:
    chosen = mode.choose(present, amount, strategy)
    assert bool(chosen) == (0 < amount <= mode.room(present).greatest)
    assert sum(chosen.values()) in (0, amount)
    by_uuid = {card.uuid: card for card in present}
    assert all(by_uuid[uuid].fits(units) for uuid, units in chosen.items())


def test_unhealthy_cards_and_those_reserved_as_a_whole_offer_nothing() -> None:
    present = [Card("a", 0, 2, 1), Card("b", 1, 2, healthy=False), Card("c", 2, 0)]
    assert SLICES.room(present) == Room(1, 1, 1)
    assert MEMORY.room(present) == Room(1, 2, 1)


@pytest.mark.parametrize("mode", EVERY_MODE)
@given(present=CARDS)
def test_more_would_fit_if_nothing_was_allocated(mode: SharingMode, present: list[Card]) -> None:
    room = mode.room(present)
    assert 0 <= room.greatest <= room.possible


@pytest.mark.parametrize(
    ("mode", "amount", "room", "text"),
    [
        pytest.param(
            MEMORY,
            20,
            Room(16, 24),
            "insufficient GPU memory in one card: asked 20, largest free 16",
            id="memory: for now",
        ),
        pytest.param(
            MEMORY,
            20,
            Room(16, 16),
            "insufficient GPU memory in one card: asked 20, largest free 16, biggest card 16",
            id="memory: for ever",
        ),
        pytest.param(
            MEMORY,
            20,
            Room(0, 0, 2),
            "insufficient GPU memory in one card: asked 20, largest free 0, biggest card 0; 2 unhealthy or"
            " cordoned cards do not count",
            id="memory: unhealthy cards",
        ),
        pytest.param(
            SLICES,
            3,
            Room(2, 3, 1),
            "insufficient GPU slices: needs 3 cards with a free slice, has 2; 1 unhealthy or cordoned"
            " card does not count",
            id="slices: an unhealthy card",
        ),
        pytest.param(
            CARDS_MODE,
            3,
            Room(0, 2),
            "insufficient GPU cards: needs 3 free cards, has 0, of 2 in all",
            id="cards: for ever",
        ),
        pytest.param(
            SLICES,
            2,
            Room(1, 4),
            "insufficient GPU slices: needs 2 cards with a free slice, has 1",
            id="slices: for now",
        ),
        pytest.param(
            SLICES,
            1,
            Room(0, 4),
            "insufficient GPU slices: needs a card with a free slice, has 0",
            id="slices: one",
        ),
        pytest.param(
            SLICES,
            5,
            Room(1, 4),
            "insufficient GPU slices: needs 5 cards with a free slice, has 1, of 4 in all",
            id="slices: for ever",
        ),
        pytest.param(
            CARDS_MODE,
            2,
            Room(1, 4),
            "insufficient GPU cards: needs 2 free cards, has 1",
            id="cards: for now",
        ),
        pytest.param(
            CARDS_MODE, 1, Room(0, 4), "insufficient GPU cards: needs a free card, has 0", id="cards: one"
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_there_is(
    mode: SharingMode, amount: int, room: Room, text: str
) -> None:
    assert mode.explain(amount, room) == text


def test_a_refusal_for_the_resource_names_what_the_node_serves() -> None:
    assert other_resource_reason("aliyun.com/gpu-mem", ["gpushare.io/memory"]) == (
        "node(s) that serve gpushare.io/memory, and the pod asks for aliyun.com/gpu-mem"
    )


def test_a_refusal_of_several_resources_names_the_mode_that_allows_them() -> None:
    request = PodRequest(
        (
            ResourceRequest("gpushare.io/memory", ResourceClass.MEMORY, 4),
            ResourceRequest("gpushare.io/slice", ResourceClass.SLICE, 1),
        )
    )
    assert several_resources_reason(request.resources) == (
        "the pod asks for gpushare.io/memory and gpushare.io/slice together: only mode Mixed allows that"
    )


def linked_cards(*groups: tuple[int, int]) -> list[Card]:
    """Whole cards that are free, by NUMA node and link group."""
    return [
        Card(f"GPU-{index}", index, 1, numa_node=node, link_group=group)
        for index, (node, group) in enumerate(groups)
    ]


@pytest.mark.parametrize(
    ("cards", "amount", "indices"),
    [
        pytest.param(linked_cards((0, 0), (0, 1), (0, 0), (0, 1)), 2, [0, 2], id="two that are linked"),
        pytest.param(linked_cards((0, 0), (0, 0), (0, 0), (0, 1), (0, 1)), 2, [3, 4], id="a pair for a pair"),
        pytest.param(linked_cards((0, 0), (0, 0), (0, 1)), 1, [2], id="one alone for one"),
        pytest.param(linked_cards((0, 0), (1, 0), (1, 0)), 2, [1, 2], id="a number is of its NUMA node"),
        pytest.param(
            linked_cards((0, 0), (0, 1), (1, 0), (1, 1), (1, 2)), 2, [0, 1], id="else of a NUMA node"
        ),
        pytest.param(linked_cards((0, -1), (0, -1), (0, 0), (0, 0)), 2, [2, 3], id="not of unknown links"),
    ],
)
def test_whole_cards_are_linked_where_that_is_known(
    cards: list[Card], amount: int, indices: list[int]
) -> None:
    assert CARDS_MODE.choose(cards, amount) == {f"GPU-{index}": 1 for index in indices}


def free_cards(*numa_nodes: int, allocated: tuple[int, ...] = ()) -> list[Card]:
    """Whole cards, each of its NUMA node; those whose index is ``allocated`` are taken."""
    return [
        Card(f"GPU-{index}", index, 1, int(index in allocated), numa_node=node)
        for index, node in enumerate(numa_nodes)
    ]


@pytest.mark.parametrize(
    ("cards", "amount", "indices"),
    [
        pytest.param(free_cards(0, 0, 1, 1, allocated=(0,)), 2, [2, 3], id="two of one NUMA node"),
        pytest.param(free_cards(0, 0, 1, 1, allocated=(2,)), 1, [3], id="where the fewest are left over"),
        pytest.param(free_cards(0, 1, 0, 1), 2, [0, 2], id="the first node on ties"),
        pytest.param(free_cards(0, 0, 1), 3, [0, 1, 2], id="of several where it must"),
        pytest.param(free_cards(-1, -1, -1), 2, [0, 1], id="NUMA nodes unknown"),
        pytest.param(free_cards(0, 0, allocated=(1,)), 2, [], id="too few"),
    ],
)
def test_whole_cards_come_from_one_numa_node(cards: list[Card], amount: int, indices: list[int]) -> None:
    assert CARDS_MODE.choose(cards, amount) == {f"GPU-{index}": 1 for index in indices}


@pytest.mark.parametrize(
    ("cards", "amount", "reason"),
    [
        pytest.param(linked_cards((0, 0), (0, 1), (0, 0)), 2, ChoiceReason.LINKED, id="linked"),
        pytest.param(linked_cards((0, -1), (0, -1), (1, -1)), 2, ChoiceReason.NUMA_NODE, id="near"),
        pytest.param(linked_cards((0, 0), (0, 0)), 1, ChoiceReason.FIRST, id="one of a single group"),
        pytest.param(free_cards(-1, -1, -1), 2, ChoiceReason.FIRST, id="nothing known"),
        pytest.param(free_cards(0, 1, allocated=(1,)), 1, ChoiceReason.ONLY, id="the others are taken"),
    ],
)
def test_whole_cards_have_the_reason_of_their_group(
    cards: list[Card], amount: int, reason: ChoiceReason
) -> None:
    chosen = CARDS_MODE.choose(cards, amount)
    assert CARDS_MODE.reason(cards, chosen, Strategy.BINPACK) is reason


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        pytest.param(Strategy.BINPACK, ChoiceReason.TIGHTEST, id="binpack"),
        pytest.param(Strategy.SPREAD, ChoiceReason.EMPTIEST, id="spread"),
    ],
)
def test_units_of_memory_have_the_reason_of_their_strategy(strategy: Strategy, reason: ChoiceReason) -> None:
    cards = [Card("a", 0, 16, 4), Card("b", 1, 16, 8), Card("c", 2, 16)]
    assert MEMORY.reason(cards, MEMORY.choose(cards, 4, strategy), strategy) is reason


REQUEST = PodRequest(
    (
        ResourceRequest(
            "gpushare.io/slice", ResourceClass.SLICE, 3, {"init": 3, "side": 1, "late": 2, "main": 2}
        ),
    ),
    init_containers=frozenset({"init", "late"}),
)


def test_init_containers_lend_their_cards_and_others_have_cards_of_their_own() -> None:
    assert SLICES.containers(REQUEST, ["a", "b", "c"]) == {
        "init": {"a": 1, "b": 1, "c": 1},
        "side": {"a": 1},
        "late": {"b": 1, "c": 1},
        "main": {"b": 1, "c": 1},
    }


@pytest.mark.parametrize("mode", EVERY_MODE)
def test_a_mode_is_found_by_what_it_serves(mode: SharingMode) -> None:
    assert mode_serving(mode.resource) is mode
    assert mode.unit(UnitFields("1Gi", 2)).resource is mode.resource
