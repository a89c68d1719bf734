"""One card takes the whole request, the right one, and a refusal says what there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.card_choice import Card, Strategy, choose, explain, largest_free

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


def cards(*allocated: int, units: int = 16) -> list[Card]:
    return [Card(f"GPU-{index}", index, units, each) for index, each in enumerate(allocated)]


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
    chosen = choose(present, units, strategy)
    assert chosen is not None
    assert chosen.index == index


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
    assert choose(present, units) is None


@given(CARDS, UNITS, STRATEGIES)
def test_a_chosen_card_is_healthy_and_never_over_committed(
    present: list[Card], units: int, strategy: Strategy
) -> None:
    chosen = choose(present, units, strategy)
    if chosen is not None:
        assert chosen.healthy
        assert chosen.allocated + units <= chosen.units


@given(CARDS, st.integers(1, 24), STRATEGIES)
def test_a_card_is_found_wherever_the_largest_free_has_room(
    present: list[Card], units: int, strategy: Strategy
) -> None:
    assert (choose(present, units, strategy) is not None) == (units <= largest_free(present))


@given(CARDS, st.integers(1, 24))
def test_binpack_leaves_the_least_and_spread_the_most(present: list[Card], units: int) -> None:
    free = [card.free for card in present if card.fits(units)]
    tight, wide = choose(present, units, Strategy.BINPACK), choose(present, units, Strategy.SPREAD)
    assert [card.free for card in (tight, wide) if card] == ([min(free), max(free)] if free else [])


def test_every_strategy_can_place() -> None:
    assert all(choose(cards(0), 1, strategy) for strategy in Strategy)


@pytest.mark.parametrize(
    ("biggest", "text"),
    [
        pytest.param(None, "insufficient GPU memory in one card: asked 20, largest free 16", id="plain"),
        pytest.param(24, "insufficient GPU memory in one card: asked 20, largest free 16", id="for now"),
        pytest.param(
            16,
            "insufficient GPU memory in one card: asked 20, largest free 16, biggest card 16",
            id="for ever",
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_there_is(biggest: int | None, text: str) -> None:
    assert explain(20, 16, biggest=biggest) == text
