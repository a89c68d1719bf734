"""A request goes to distinct cards that have room, and to the right ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.card_choice import (
    Card,
    CardRequest,
    ChoiceReason,
    Strategy,
    choice_reason,
    choose,
)

CARDS = st.lists(
    st.builds(
        Card,
        uuid=st.just(""),
        index=st.integers(0, 7),
        units=st.integers(0, 20),
        allocated=st.integers(0, 30),
        healthy=st.booleans(),
    ),
    max_size=8,
)
UNITS = st.integers(-1, 24)
STRATEGIES = st.sampled_from(Strategy)


REQUESTS = st.builds(CardRequest, cards=st.integers(1, 4), units=UNITS)


def on_one(units: int) -> CardRequest:
    return CardRequest(cards=1, units=units)


def cards(*allocated: int, units: int = 16) -> list[Card]:
    return [Card(f"GPU-{index}", index, units, used) for index, used in enumerate(allocated)]


@pytest.mark.parametrize(
    ("present", "units", "strategy", "index"),
    [
        pytest.param(cards(0, 0), 4, Strategy.BINPACK, 0, id="empty node: first card"),
        pytest.param(cards(4, 0), 8, Strategy.BINPACK, 0, id="the tightest card that fits"),
        pytest.param(cards(12, 0), 12, Strategy.BINPACK, 1, id="4 left are not enough for 12"),
        pytest.param(cards(0, 8, 8), 8, Strategy.BINPACK, 1, id="lowest index on ties"),
        pytest.param(cards(4, 8, 0), 4, Strategy.SPREAD, 2, id="spread: the emptiest card"),
        pytest.param(cards(4, 4), 4, Strategy.SPREAD, 0, id="spread: lowest index on ties"),
        pytest.param(cards(16, 15), 1, Strategy.BINPACK, 1, id="exactly full afterwards"),
        pytest.param(
            [Card("a", 0, 16, healthy=False), Card("b", 1, 32)],
            4,
            Strategy.BINPACK,
            1,
            id="not the tighter card that is sick",
        ),
    ],
)
def test_the_request_goes_to(present: list[Card], units: int, strategy: Strategy, index: int) -> None:
    assert [card.index for card in choose(present, on_one(units), strategy)] == [index]


@pytest.mark.parametrize(
    ("present", "units"),
    [
        pytest.param(cards(0, 0), 20, id="more than any card, less than the node"),
        pytest.param(cards(12, 12), 5, id="more than any card has left"),
        pytest.param([Card("a", 0, 16, healthy=False)], 1, id="only sick cards"),
        pytest.param(cards(120, units=80), 1, id="over-full card: no underflow"),
        pytest.param(cards(0), 0, id="nothing asked"),
        pytest.param([], 1, id="no cards"),
    ],
)
def test_the_request_goes_nowhere(present: list[Card], units: int) -> None:
    assert choose(present, on_one(units)) == ()


@pytest.mark.parametrize(
    ("present", "count", "strategy", "indices"),
    [
        pytest.param(cards(0, 12, 8), 2, Strategy.BINPACK, [1, 2], id="the tightest first"),
        pytest.param(cards(0, 12, 8), 2, Strategy.SPREAD, [0, 2], id="spread: the emptiest first"),
        pytest.param(cards(0, 14, 0), 2, Strategy.BINPACK, [0, 2], id="not the one without room"),
        pytest.param(cards(0, 14, 14), 2, Strategy.BINPACK, [], id="room on too few cards"),
    ],
)
def test_a_request_of_several_cards_goes_to(
    present: list[Card], count: int, strategy: Strategy, indices: list[int]
) -> None:
    chosen = choose(present, CardRequest(cards=count, units=4), strategy)
    assert [card.index for card in chosen] == indices


@given(CARDS, REQUESTS, STRATEGIES)
def test_chosen_cards_are_distinct_healthy_and_never_over_committed(
    present: list[Card], request: CardRequest, strategy: Strategy
) -> None:
    chosen = choose(present, request, strategy)
    assert len({id(card) for card in chosen}) in (0, request.cards)
    assert all(card.healthy and card.allocated + request.units <= card.units for card in chosen)


@given(CARDS, st.integers(1, 24))
def test_binpack_leaves_the_least_and_spread_the_most(present: list[Card], units: int) -> None:
    free = [card.free for card in present if card.fits(units)]
    tight, wide = (
        choose(present, on_one(units), strategy) for strategy in (Strategy.BINPACK, Strategy.SPREAD)
    )
    assert [card.free for card in (*tight, *wide)] == ([min(free), max(free)] if free else [])


def test_every_strategy_can_place() -> None:
    assert all(choose(cards(0), on_one(1), strategy) for strategy in Strategy)


def open_to_all(allocated: int, index: int) -> Card:
    """A card that its first use takes from other classes."""
    return Card(f"GPU-{index}", index, 16, allocated, lockable=True)


@pytest.mark.parametrize(
    ("present", "strategy", "reason"),
    [
        pytest.param(cards(4, 14), Strategy.BINPACK, ChoiceReason.ONLY, id="the other one is too full"),
        pytest.param(cards(4, 8, 0), Strategy.BINPACK, ChoiceReason.TIGHTEST, id="tightest"),
        pytest.param(cards(4, 4, 0), Strategy.BINPACK, ChoiceReason.TIGHTEST, id="of two that are as tight"),
        pytest.param(cards(4, 8, 0), Strategy.SPREAD, ChoiceReason.EMPTIEST, id="emptiest"),
        pytest.param(cards(0, 0), Strategy.BINPACK, ChoiceReason.FIRST, id="all alike"),
        pytest.param(cards(8, 8), Strategy.SPREAD, ChoiceReason.FIRST, id="all alike, spread"),
        pytest.param(
            [*cards(8), open_to_all(0, 1)], Strategy.SPREAD, ChoiceReason.IN_USE, id="unused cards stay free"
        ),
        pytest.param(
            [*cards(8, 4), open_to_all(0, 2)], Strategy.SPREAD, ChoiceReason.EMPTIEST, id="of those in use"
        ),
    ],
)
def test_a_choice_has_its_reason(present: list[Card], strategy: Strategy, reason: ChoiceReason) -> None:
    chosen = [card.uuid for card in choose(present, on_one(4), strategy)]
    assert choice_reason(present, 4, chosen=chosen, strategy=strategy) is reason
