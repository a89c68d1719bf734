"""Pods that were refused and would fit now."""

import pytest
from tests.samples.extender import RESOURCE, asked

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_extender.decide.waiting.unschedulable_pods import MAX_PODS, UnschedulablePods


@pytest.fixture
def refused() -> UnschedulablePods:
    """``small`` asks for 4, ``big`` for 16; both fit nowhere."""
    refused = UnschedulablePods()
    refused.refused("small", asked(4))
    refused.refused("big", asked(16))
    return refused


@pytest.mark.parametrize(("units", "waits"), [(3, False), (4, True), (16, True)])
def test_room_for_one_of_them_is_news(refused: UnschedulablePods, units: int, *, waits: bool) -> None:
    assert refused.has_room(RESOURCE, units) is waits
    assert refused.take_waiting() is waits
    assert refused.take_waiting() is False


def test_a_pod_tried_since_is_not_waiting_any_more(refused: UnschedulablePods) -> None:
    refused.has_room(RESOURCE, 4)
    refused.refused("small", asked(4))
    assert refused.take_waiting() is False


def test_nor_one_that_fits_now(refused: UnschedulablePods) -> None:
    refused.has_room(RESOURCE, 4)
    refused.settled("small")
    refused.settled("never refused")
    assert refused.take_waiting() is False


def test_those_refused_longest_ago_are_forgotten_first_where_all_ask_for_something_else() -> None:
    refused = UnschedulablePods(most=2)
    for uid, units in (("a", 1), ("b", 8), ("c", 9)):
        refused.refused(uid, asked(units))
    assert refused.has_room(RESOURCE, 1) is False
    assert refused.has_room(RESOURCE, 9) is True


def test_a_small_pod_is_known_however_many_large_ones_are_refused_after_it() -> None:
    """Room for it is none for them: nobody would wake it."""
    refused = UnschedulablePods()
    refused.refused("small", asked(4))
    for number in range(MAX_PODS + 10):
        refused.refused(f"large-{number}", asked(16))
    assert refused.has_room(RESOURCE, 4) is True
    assert refused.take_waiting() is True
    assert refused.has_room(RESOURCE, 16) is True


def test_of_those_that_ask_for_the_same_one_stands_for_the_forgotten_ones() -> None:
    refused = UnschedulablePods(most=2)
    for uid in ("a", "b", "c"):
        refused.refused(uid, asked(4))
    refused.settled("b")
    assert refused.has_room(RESOURCE, 4) is True
    refused.settled("c")
    assert refused.has_room(RESOURCE, 4) is False


def test_one_that_alone_would_fit_is_known_however_many_like_it_are_refused_after_it() -> None:
    """A card is held for it: room for it is none for the others, and nobody would wake it."""
    refused = UnschedulablePods()
    refused.refused("held for", asked(16))
    for number in range(MAX_PODS):
        refused.refused(f"like-it-{number}", asked(16))
    assert refused.fits("held for") is True
    assert refused.take_waiting() is True


def test_whoever_is_tried_again_was_not_forgotten_and_is_not_woken_twice() -> None:
    refused = UnschedulablePods(most=2)
    for uid in ("a", "b", "c"):
        refused.refused(uid, asked(4))
    refused.has_room(RESOURCE, 4)
    assert refused.take_waiting() is True
    assert refused.fits("a") is False
    assert refused.take_waiting() is False


def test_one_that_was_never_refused_is_not_woken_while_all_are_known(refused: UnschedulablePods) -> None:
    assert refused.fits("never refused") is False


def test_more_room_on_any_card_is_news_to_pods_of_several_resources_alone(refused: UnschedulablePods) -> None:
    assert refused.card_has_room() is False
    refused.refused("pair", PodRequest((asked(4), asked(1, ResourceClass.SLICE, container="side"))))
    assert refused.card_has_room() is True
    assert refused.take_waiting() is True


def test_of_equal_requests_each_pod_is_known_by_itself() -> None:
    refused = UnschedulablePods()
    for uid in ("a", "b"):
        refused.refused(uid, asked(4))
    refused.settled("a")
    assert refused.fits("a") is False
    assert refused.has_room(RESOURCE, 4) is True
    refused.settled("b")
    assert refused.has_room(RESOURCE, 4) is False
