"""What NVML's answers mean, by values alone."""

import pytest

from gpushare_plugin.devices.card import LeftOutCard, PhysicalCard
from gpushare_plugin.devices.nvml.cards import (
    DRIVER_FAULTS,
    NEVER_ONE_CARD,
    CardFacts,
    compute_score,
    driver_problem,
    link_groups,
    reading_of,
    without_answer,
    without_driver,
)

LOST = 15
NEEDS_RESET = 16


def known(index: int, uuid: str) -> PhysicalCard:
    return PhysicalCard(uuid=uuid, index=index, memory=16)


def good(index: int, uuid: str) -> CardFacts:
    return CardFacts(index=index, uuid=uuid, memory=16)


def lost(index: int, uuid: str = "") -> CardFacts:
    return CardFacts(index=index, uuid=uuid, error=LOST, call="nvmlDeviceGetUUID")


A, B, C = known(0, "A"), known(1, "B"), known(2, "C")


@pytest.mark.parametrize(
    ("facts", "before", "expected"),
    [
        pytest.param([good(0, "A"), good(1, "B")], (), {"A": True, "B": True}, id="first reading"),
        pytest.param([good(0, "A"), lost(1, "B")], (A, B), {"A": True, "B": False}, id="its UUID is told"),
        pytest.param([good(0, "A"), lost(1)], (A, B), {"A": True, "B": False}, id="its index is its own"),
        pytest.param([good(0, "B"), lost(1)], (A, B), {"B": True, "A": False}, id="the index has shifted"),
        pytest.param([lost(0), lost(1)], (A, B), {"A": False, "B": False}, id="both without UUID"),
        pytest.param([lost(0), good(1, "C")], (A, B, C), {"A": False, "C": True}, id="one lost, one gone"),
        pytest.param([good(0, "B")], (A, B), {"B": True}, id="one gone"),
        pytest.param([], (A, B), {}, id="all gone"),
        pytest.param([good(0, "A"), lost(1)], (A,), {"A": True}, id="never known"),
    ],
)
def test_a_card_that_fails_is_the_one_that_is_missed(
    facts: list[CardFacts], before: tuple[PhysicalCard, ...], expected: dict[str, bool]
) -> None:
    reading = reading_of(facts, (), before)
    assert {card.uuid: card.healthy for card in reading.cards} == expected
    assert len(reading.cards) + len(reading.left_out) == len(facts)


def test_what_is_left_out_says_why() -> None:
    facts = [CardFacts(index=0, uuid="A", mig_enabled=True), lost(1)]
    on_purpose, faulty = reading_of(facts, (), ()).left_out
    assert "MIG is enabled" in on_purpose.reason
    assert faulty == LeftOutCard(
        index=1,
        reason="it has fallen off the bus or is not accessible any more: reboot the node, or replace the"
        " card (NVML error 15 of nvmlDeviceGetUUID)",
        healthy=False,
    )


@pytest.mark.parametrize("uuid", ["", "GPU-\x1b[2J", "GPU-0,GPU-1", "x" * 64])
def test_a_card_whose_uuid_no_book_can_have_is_left_out(uuid: str) -> None:
    reading = reading_of([good(0, "A"), good(1, uuid)], (), ())
    assert [card.uuid for card in reading.cards] == ["A"]
    assert "reports no UUID that only this card has" in reading.left_out[0].reason


def test_a_fault_names_the_card_by_the_index_that_the_driver_uses_now() -> None:
    facts = CardFacts(index=3, uuid="A", error=NEEDS_RESET, call="nvmlDeviceGetMemoryInfo")
    (card,) = reading_of([facts], (), (A,)).cards
    assert card.index == 3
    assert "`nvidia-smi --gpu-reset -i 3`" in card.reason


@pytest.mark.parametrize(
    ("capability", "score"),
    [((7, 5), 750), ((8, 6), 860), ((9, 0), 900), ((12, 1), 1210), ((0, 0), 0)],
)
def test_newer_cards_have_a_higher_score(capability: tuple[int, int], score: int) -> None:
    assert compute_score(capability) == score


@pytest.mark.parametrize(
    ("linked", "groups"),
    [
        pytest.param("", {}, id="no links"),
        pytest.param("AB CD", {"A": 0, "B": 0, "C": 1, "D": 1}, id="two pairs"),
        pytest.param("AB AC AD BC BD CD", dict.fromkeys("ABCD", 0), id="all through a switch"),
        pytest.param("AB BC CD DA", {"A": 0, "B": 0, "C": 1, "D": 1}, id="a ring"),
        pytest.param("AC", {"A": 0, "C": 0}, id="others stand alone"),
    ],
)
def test_all_cards_of_a_group_are_linked_with_each_other(linked: str, groups: dict[str, int]) -> None:
    pairs = {frozenset(pair) for pair in linked.split()}
    assert link_groups("ABCD", pairs) == groups


@pytest.mark.parametrize("code", sorted({*DRIVER_FAULTS, *NEVER_ONE_CARD, 17, 999}))
def test_a_fault_of_the_driver_keeps_every_card(code: int) -> None:
    reading = without_driver(code, "nvmlInit", (A, B))
    assert reading.problem == driver_problem(code, "nvmlInit")
    assert [card.uuid for card in reading.cards] == ["A", "B"]
    stops = code in DRIVER_FAULTS and DRIVER_FAULTS[code].stops_cards
    assert [card.healthy for card in reading.cards] == [not stops] * 2


def test_a_driver_that_hangs_keeps_its_cards_for_those_who_hold_them() -> None:
    reading = without_answer(5.0, (A,))
    assert [(card.uuid, card.healthy) for card in reading.cards] == [("A", False)]
    assert reading.problem
    assert "has not answered for more than 5 s: look for Xid" in reading.problem.message
