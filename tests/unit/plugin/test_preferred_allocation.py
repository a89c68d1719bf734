"""Units come from one card, from the right one, and exactly as many as asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import card, layout

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import WHOLE_CARD, CardPart
from gpushare_plugin.decide.admit.preferred_allocation import (
    ContainerRequest,
    NothingFitsError,
    choose_card,
    choose_units,
)
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.decide.units.unit_ids import UnitSet

TWO = layout()


@pytest.mark.parametrize(
    ("container", "available", "expected"),
    [
        pytest.param(
            ContainerRequest(units=4, pod_units=4, annotated_cards=("GPU-1",)),
            (16, 16),
            "GPU-1",
            id="the annotated card",
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=4), (16, 8), "GPU-1", id="no annotation: the tightest"
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=4, annotated_cards=("GPU-1",)),
            (16, 3),
            "GPU-0",
            id="annotated card is full",
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=4, annotated_cards=("GPU-9",)),
            (16, 8),
            "GPU-1",
            id="annotated card is no more",
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=8, annotated_cards=("GPU-1",)),
            (16, 6),
            "GPU-0",
            id="the whole pod must fit, not one part",
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=4, promised={"GPU-1": 6}),
            (16, 8),
            "GPU-0",
            id="not what others were promised",
        ),
        pytest.param(
            ContainerRequest(units=4, pod_units=4, promised={"GPU-0": 16, "GPU-1": 6}),
            (16, 8),
            "GPU-1",
            id="if nothing else is left, that too",
        ),
        pytest.param(
            ContainerRequest(
                units=2, pod_units=2, annotated_cards=("GPU-1",), pod_cards=frozenset({"GPU-0"})
            ),
            (2, 16),
            "GPU-0",
            id="where the pod's other units are",
        ),
    ],
)
def test_the_card_follows_from_the_rules(
    container: ContainerRequest, available: tuple[int, int], expected: str
) -> None:
    counts = {"GPU-0": available[0], "GPU-1": available[1]}
    assert choose_card(container, TWO, counts, Strategy.BINPACK) == expected


def test_the_strategy_decides_where_nothing_else_does() -> None:
    counts = {"GPU-0": 8, "GPU-1": 16}
    assert choose_card(ContainerRequest(units=4, pod_units=4), TWO, counts, Strategy.SPREAD) == "GPU-1"


@pytest.mark.parametrize(
    ("container", "message"),
    [
        pytest.param(
            ContainerRequest(units=20, pod_units=20),
            "insufficient GPU memory in one card: asked 20, largest free 8",
            id="no card has so much",
        ),
        pytest.param(
            ContainerRequest(units=6, pod_units=6, pod_cards=frozenset({"GPU-0"})),
            "insufficient GPU memory in one card: asked 6 beside the pod's other units on GPU-0 with 4 free",
            id="not beside the other units",
        ),
        pytest.param(
            ContainerRequest(units=1, pod_units=1, pod_cards=frozenset({"GPU-0", "GPU-1"})),
            "asked 1 beside the pod's other units on GPU-0 with 4 free, GPU-1 with 8 free",
            id="torn apart already",
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_there_is(container: ContainerRequest, message: str) -> None:
    with pytest.raises(NothingFitsError) as refusal:
        choose_card(container, TWO, {"GPU-0": 4, "GPU-1": 8}, Strategy.BINPACK)
    assert message in str(refusal.value)


def test_an_unhealthy_card_is_not_chosen() -> None:
    cards = layout(card(0, healthy=False), card(1))
    container = ContainerRequest(units=4, pod_units=4)
    assert choose_card(container, cards, {"GPU-0": 16, "GPU-1": 16}, Strategy.BINPACK) == "GPU-1"


@given(
    st.sets(st.integers(0, 31)),
    st.sets(st.integers(0, 15), max_size=4),
    st.integers(1, 16),
    st.sampled_from([("GPU-0",), ("GPU-1",), ()]),
)
def test_an_answer_is_complete_of_one_card_and_contains_what_it_must(
    available: set[int], included: set[int], units: int, annotated: tuple[str, ...]
) -> None:
    if len(included) > units:
        return
    offered = available | included
    together = frozenset({"GPU-0"}) if included else frozenset[str]()
    request = ContainerRequest(units=units, pod_units=units, annotated_cards=annotated, pod_cards=together)
    try:
        (uuid,), numbers = choose_units(
            request, TWO, available=UnitSet(offered), included=included, strategy=Strategy.BINPACK
        )
    except NothingFitsError:
        cards = ["GPU-0"] if included else ["GPU-0", "GPU-1"]
        assert all(TWO.shares(sorted(offered)).get(card, 0) < units for card in cards)
        return
    assert TWO.shares(numbers) == {uuid: units}
    assert len(set(numbers)) == units
    assert included <= set(numbers) <= offered


def test_what_a_forgotten_pod_has_is_not_available() -> None:
    request = ContainerRequest(
        units=6, pod_units=6, annotated_cards=("GPU-0",), promised={"GPU-1": 16}, lost={"GPU-0": 12}
    )
    available = UnitSet(range(32))
    assert choose_units(request, TWO, available=available, included=(), strategy=Strategy.BINPACK)[0] == (
        "GPU-1",
    )


HALVES = lay_out([card(0), card(1), card(2)], CardPart(ResourceClass.SLICE, 2), reserved=0)
"""GPU-0 has units 0 and 1, GPU-1 has 2 and 3, GPU-2 has 4 and 5."""


@pytest.mark.parametrize(
    ("request_", "available", "included", "cards"),
    [
        pytest.param(
            ContainerRequest(units=2, pod_units=2, annotated_cards=("GPU-1", "GPU-2")),
            {0, 1, 2, 3, 4, 5},
            [],
            {"GPU-1", "GPU-2"},
            id="the annotated cards",
        ),
        pytest.param(
            ContainerRequest(units=1, pod_units=2, annotated_cards=("GPU-1", "GPU-2")),
            {0, 1, 2, 3, 4, 5},
            [],
            {"GPU-1"},
            id="the first of them for the first container",
        ),
        pytest.param(
            ContainerRequest(
                units=1,
                pod_units=1,
                annotated_cards=("GPU-1", "GPU-2"),
                pod_cards=frozenset({"GPU-1"}),
            ),
            {0, 1, 3, 4, 5},
            [],
            {"GPU-2"},
            id="the next one for the next",
        ),
        pytest.param(
            ContainerRequest(units=2, pod_units=2, annotated_cards=("GPU-1", "GPU-2")),
            {0, 2, 3},
            [],
            {"GPU-0", "GPU-1"},
            id="an annotated card is full",
        ),
        pytest.param(
            ContainerRequest(units=2, pod_units=2, promised={"GPU-0": 1}),
            {0, 2, 4},
            [],
            {"GPU-1", "GPU-2"},
            id="not what others were promised",
        ),
        pytest.param(
            ContainerRequest(units=2, pod_units=2, promised={"GPU-0": 1}),
            {0, 2},
            [],
            {"GPU-0", "GPU-1"},
            id="if nothing else is left, that too",
        ),
        pytest.param(
            ContainerRequest(units=2, pod_units=2, lost={"GPU-0": 1}),
            {0, 2, 4},
            [],
            {"GPU-1", "GPU-2"},
            id="not what a pod has that the kubelet lost",
        ),
        pytest.param(
            ContainerRequest(units=2, pod_units=1, pod_cards=frozenset({"GPU-2"})),
            {0, 2, 4, 5},
            [5],
            {"GPU-0", "GPU-2"},
            id="what an init container lends is one of them",
        ),
    ],
)
def test_slices_are_of_distinct_cards(
    request_: ContainerRequest, available: set[int], included: list[int], cards: set[str]
) -> None:
    chosen, numbers = choose_units(
        request_, HALVES, available=UnitSet(available), included=included, strategy=Strategy.BINPACK
    )
    assert set(chosen) == cards
    assert HALVES.shares(sorted(numbers)) == dict.fromkeys(cards, 1)
    assert set(included) <= set(numbers) <= available


def test_whole_cards_come_from_one_numa_node() -> None:
    nodes = lay_out([card(index, numa_node=index % 2) for index in range(4)], WHOLE_CARD, reserved=0)
    chosen, _ = choose_units(
        ContainerRequest(units=2, pod_units=2),
        nodes,
        available=UnitSet({0, 1, 3}),
        included=(),
        strategy=Strategy.BINPACK,
    )
    assert chosen == ("GPU-1", "GPU-3")


def test_a_refusal_says_how_many_cards_have_a_slice() -> None:
    with pytest.raises(NothingFitsError, match="needs 2 cards with a free slice, has 1"):
        choose_units(
            ContainerRequest(units=2, pod_units=2),
            HALVES,
            available=UnitSet({2, 3}),
            included=(),
            strategy=Strategy.BINPACK,
        )


@given(st.sets(st.integers(0, 5)), st.integers(1, 4), st.sampled_from([(), ("GPU-2",), ("GPU-2", "GPU-0")]))
def test_an_answer_in_slices_is_complete_and_of_distinct_cards(
    available: set[int], units: int, annotated: tuple[str, ...]
) -> None:
    request = ContainerRequest(units=units, pod_units=units, annotated_cards=annotated)
    free = HALVES.shares(sorted(available))
    try:
        cards, numbers = choose_units(
            request, HALVES, available=UnitSet(available), included=(), strategy=Strategy.BINPACK
        )
    except NothingFitsError:
        assert len(free) < units
        return
    assert len(cards) == units
    assert HALVES.shares(sorted(numbers)) == dict.fromkeys(cards, 1)
    assert set(numbers) <= available
