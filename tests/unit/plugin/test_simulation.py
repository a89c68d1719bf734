"""What is asked of simulated cards happens to them, and to no others."""

import pytest

from gpushare_core.api.share_node import SimulatedCards
from gpushare_plugin.devices.simulated.simulation import Simulation, read_simulation, simulated_reading
from gpushare_plugin.devices.simulated.source import simulate

CARDS = tuple(simulate("gpu-1", [SimulatedCards(count=3, memory="16Gi")]))
NAMES = {card.uuid: name for card, name in zip(CARDS, "abc", strict=True)}


def problem_of(text: str) -> str:
    """Cards by the letter of their UUID in the order of their indices; a capital letter: not healthy."""
    cards = simulated_reading(CARDS, text).cards
    assert [card.index for card in cards] == sorted(card.index for card in cards)
    return "".join(NAMES[card.uuid] if card.healthy else NAMES[card.uuid].upper() for card in cards)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "abc"),
        ("fail=1", "aBc"),
        ("fail=0,2", "AbC"),
        ("vanish=0", "bc"),
        ("vanish=0,1,2", ""),
        ("shift=1", "cab"),
        ("shift=-1", "bca"),
        ("shift=1 fail=0 vanish=2", "Ab"),
        ("driver=hung", "ABC"),
        ("fail=7", "abc"),
    ],
)
def test_what_is_asked_happens(text: str, expected: str) -> None:
    assert problem_of(text) == expected


def test_only_a_driver_that_hangs_is_a_problem_of_all() -> None:
    hung = simulated_reading(CARDS, "driver=hung").problem
    assert hung
    assert hung.reason == "DriverHung"
    assert simulated_reading(CARDS, "fail=0,1,2 shift=1").problem is None


@pytest.mark.parametrize("text", ["fail", "fail=", "fail=x", "fail=1=2", "break=1", "driver=gone", "shift=a"])
def test_what_cannot_be_read_is_said_and_nothing_happens(text: str) -> None:
    reading = simulated_reading(CARDS, f"vanish=1 {text}")
    assert reading.cards == CARDS
    assert reading.problem
    assert reading.problem.reason == "SimulationUnreadable"
    assert repr(text) in reading.problem.message
    assert "fail=0,2" in reading.problem.message


def test_words_come_in_any_order() -> None:
    expected = Simulation(fail=frozenset({1}), vanish=frozenset({2}), shift=1, hangs=True)
    assert read_simulation(" driver=hung  shift=1 vanish=2 fail=1 ") == expected
