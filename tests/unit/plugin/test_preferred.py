"""Units come from one card, from the right one, and exactly as many as asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import card, layout

from gpushare_core.placement.cards import Strategy
from gpushare_plugin.decide.card_choice import NothingFitsError, Wish, choose_card, choose_units
from gpushare_plugin.decide.unit_set import UnitSet

TWO = layout()


@pytest.mark.parametrize(
    ("wish", "available", "expected"),
    [
        pytest.param(Wish(size=4, rest=4, annotated="GPU-1"), (16, 16), "GPU-1", id="the annotated card"),
        pytest.param(Wish(size=4, rest=4), (16, 8), "GPU-1", id="no annotation: the tightest"),
        pytest.param(Wish(size=4, rest=4, annotated="GPU-1"), (16, 3), "GPU-0", id="annotated card is full"),
        pytest.param(
            Wish(size=4, rest=4, annotated="GPU-9"), (16, 8), "GPU-1", id="annotated card is no more"
        ),
        pytest.param(
            Wish(size=4, rest=8, annotated="GPU-1"),
            (16, 6),
            "GPU-0",
            id="the whole pod must fit, not one part",
        ),
        pytest.param(
            Wish(size=4, rest=4, promised={"GPU-1": 6}), (16, 8), "GPU-0", id="not what others were promised"
        ),
        pytest.param(
            Wish(size=4, rest=4, promised={"GPU-0": 16, "GPU-1": 6}),
            (16, 8),
            "GPU-1",
            id="if nothing else is left, that too",
        ),
        pytest.param(
            Wish(size=2, rest=2, annotated="GPU-1", together_with=frozenset({"GPU-0"})),
            (2, 16),
            "GPU-0",
            id="where the pod's other units are",
        ),
    ],
)
def test_the_card_follows_from_the_rules(wish: Wish, available: tuple[int, int], expected: str) -> None:
    counts = {"GPU-0": available[0], "GPU-1": available[1]}
    assert choose_card(wish, TWO, counts, Strategy.BINPACK) == expected


def test_the_strategy_decides_where_nothing_else_does() -> None:
    counts = {"GPU-0": 8, "GPU-1": 16}
    assert choose_card(Wish(size=4, rest=4), TWO, counts, Strategy.SPREAD) == "GPU-1"


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        pytest.param(
            Wish(size=20, rest=20),
            "insufficient GPU memory in one card: asked 20, largest free 8",
            id="no card has so much",
        ),
        pytest.param(
            Wish(size=6, rest=6, together_with=frozenset({"GPU-0"})),
            "insufficient GPU memory in one card: asked 6 beside the pod's other units on GPU-0 with 4 free",
            id="not beside the other units",
        ),
        pytest.param(
            Wish(size=1, rest=1, together_with=frozenset({"GPU-0", "GPU-1"})),
            "asked 1 beside the pod's other units on GPU-0 with 4 free, GPU-1 with 8 free",
            id="torn apart already",
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_there_is(wish: Wish, told: str) -> None:
    with pytest.raises(NothingFitsError) as refusal:
        choose_card(wish, TWO, {"GPU-0": 4, "GPU-1": 8}, Strategy.BINPACK)
    assert told in str(refusal.value)


def test_an_unhealthy_card_is_not_chosen() -> None:
    ill = layout(card(0, healthy=False), card(1))
    assert choose_card(Wish(size=4, rest=4), ill, {"GPU-0": 16, "GPU-1": 16}, Strategy.BINPACK) == "GPU-1"


@given(
    st.sets(st.integers(0, 31)),
    st.sets(st.integers(0, 15), max_size=4),
    st.integers(1, 16),
    st.sampled_from(["GPU-0", "GPU-1", None]),
)
def test_an_answer_is_complete_of_one_card_and_contains_what_it_must(
    available: set[int], included: set[int], size: int, annotated: str | None
) -> None:
    if len(included) > size:
        return
    offered = available | included
    together = frozenset({"GPU-0"}) if included else frozenset[str]()
    wish = Wish(size=size, rest=size, annotated=annotated, together_with=together)
    try:
        uuid, numbers = choose_units(
            wish, TWO, available=UnitSet(offered), included=included, strategy=Strategy.BINPACK
        )
    except NothingFitsError:
        cards = ["GPU-0"] if included else ["GPU-0", "GPU-1"]
        assert all(TWO.shares(sorted(offered)).get(each, 0) < size for each in cards)
        return
    assert TWO.shares(numbers) == {uuid: size}
    assert len(set(numbers)) == size
    assert included <= set(numbers) <= offered
