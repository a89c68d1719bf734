"""What each mode makes of a request: how it lies on cards, what fits, and what a refusal says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.api.enums import Mode
from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.modes import MEMORY, MODES, other_class_reason, several_classes_reason
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.placement.sharing_mode import Room, SharingMode

EVERY_MODE = [pytest.param(mode, id=name) for name, mode in MODES.items()]
CARDS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 30), st.booleans()),
    max_size=8,
).map(lambda each: [Card(f"GPU-{index}", index, *card) for index, card in enumerate(each)])


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
    ],
)
def test_a_refusal_says_what_was_asked_and_what_there_is(
    mode: SharingMode, amount: int, room: Room, text: str
) -> None:
    assert mode.explain(amount, room) == text


def test_a_refusal_for_the_mode_names_what_the_node_serves() -> None:
    assert other_class_reason(MEMORY, ResourceClass.SLICE) == (
        "the pod asks for the resource slice, and this node in mode Memory serves memory"
    )


def test_a_refusal_of_several_classes_names_the_mode_that_allows_them() -> None:
    request = PodRequest((ResourceRequest(ResourceClass.MEMORY, 4), ResourceRequest(ResourceClass.SLICE, 1)))
    assert several_classes_reason(request) == (
        "the pod asks for the resources memory and slice together: only mode Mixed allows that"
    )
