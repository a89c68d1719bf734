"""A card in a word."""

import pytest

from gpushare_core.api.enums import Health
from gpushare_core.api.share_node import CardStatus
from gpushare_plugin.decide.report.card_summary import card_line, card_summary


@pytest.mark.parametrize(
    ("mode", "lock", "allocated", "units", "expected"),
    [
        pytest.param("Memory", "", 12, 16, "12/16", id="memory"),
        pytest.param("Slices", "", 1, 2, "1/2", id="slices"),
        pytest.param("Exclusive", "", 0, 1, "free", id="a whole card that nobody has"),
        pytest.param("Exclusive", "", 1, 1, "whole", id="a whole card"),
        pytest.param("Mixed", "", 0, 86, "free", id="Mixed, without a lock"),
        pytest.param("Mixed", "Memory", 10, 86, "memory:10/86", id="Mixed, memory"),
        pytest.param("Mixed", "Slices", 1, 2, "slices:1/2", id="Mixed, slices"),
        pytest.param("Mixed", "Exclusive", 1, 1, "whole", id="Mixed, a whole card"),
    ],
)
def test_a_card_is_summed_up(mode: str, lock: str, allocated: int, units: int, expected: str) -> None:
    card = CardStatus(index=0, uuid="GPU-0", memory="86Gi", units=units, allocated_units=allocated, lock=lock)
    assert card_summary(card, mode) == expected


@pytest.mark.parametrize(
    ("health", "cordoned", "expected"),
    [
        pytest.param(Health.HEALTHY, True, "3/16(cordoned)", id="cordoned"),
        pytest.param(Health.UNHEALTHY, False, "3/16(unhealthy)", id="unhealthy"),
        pytest.param(Health.UNHEALTHY, True, "3/16(unhealthy)", id="both: the graver one"),
    ],
)
def test_a_card_to_which_no_pod_comes_says_why(health: Health, *, cordoned: bool, expected: str) -> None:
    card = CardStatus(
        index=0,
        uuid="GPU-0",
        memory="16Gi",
        units=16,
        allocated_units=3,
        health=health,
        cordoned=cordoned,
    )
    assert card_summary(card, "Memory") == expected


@pytest.mark.parametrize(
    ("mode", "lock", "allocated", "expected"),
    [
        pytest.param("Memory", "", 12, "12 of 16 units held", id="memory"),
        pytest.param("Slices", "", 1, "1 of 16 slices held", id="slices"),
        pytest.param("Exclusive", "", 1, "held by one pod", id="a whole card"),
        pytest.param("Exclusive", "", 0, "free", id="a whole card that nobody has"),
        pytest.param("Mixed", "", 0, "free", id="Mixed, without a lock"),
        pytest.param("Mixed", "Slices", 2, "2 of 16 slices held", id="Mixed, slices"),
        pytest.param("Mixed", "Exclusive", 1, "held by one pod", id="Mixed, a whole card"),
    ],
)
def test_a_card_is_described_in_a_line(mode: str, lock: str, allocated: int, expected: str) -> None:
    card = CardStatus(
        index=3, uuid="GPU-3", memory="16Gi", model="A100", units=16, allocated_units=allocated, lock=lock
    )
    assert card_line(card, mode) == f"3: {expected}, healthy, 16Gi, A100 (GPU-3)"


def test_the_line_says_why_no_new_pod_comes() -> None:
    card = CardStatus(index=0, uuid="U", memory="1Gi", units=1, health=Health.UNHEALTHY, cordoned=True)
    assert card_line(card, "Memory") == "0: 0 of 1 units held, unhealthy, cordoned, 1Gi (U)"
