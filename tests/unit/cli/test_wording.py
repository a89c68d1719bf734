"""Amounts, ages and lists of names."""

from datetime import UTC, datetime, timedelta

import pytest

from gpushare_cli.wording import age_since, age_text, counted, listed, memory_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (512, "512"),
        (1536, "1.5Ki"),
        (2**30, "1Gi"),
        (80 * 2**30, "80Gi"),
        (2**40 * 3 // 2, "1.5Ti"),
        (10**9, "953.7Mi"),
    ],
)
def test_memory_has_one_decimal_at_most(size: int, text: str) -> None:
    assert memory_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 60, "7h1m"),
        (47 * 3600, "47h"),
        (52 * 3600, "2d4h"),
        (30 * 86_400, "30d"),
        (3 * 365 * 86_400 + 86_400, "3y1d"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_an_age_is_written_as_kubectl_writes_it(seconds: int, text: str) -> None:
    assert age_text(timedelta(seconds=seconds)) == text


def test_what_has_no_time_has_no_age() -> None:
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert age_since("2026-05-01T11:00:00Z", now) == "60m"
    assert age_since("", now) == "Unknown"
    assert age_since("yesterday", now) == "Unknown"


def test_numbers_agree_with_their_nouns() -> None:
    assert counted(1, "node") == "1 node"
    assert counted(0, "node") == "0 nodes"
    assert counted(5000, "policy", "policies") == "5,000 policies"


def test_long_lists_name_a_few_and_count_the_rest() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([f"gpu-{number}" for number in range(1003)]) == "gpu-0, gpu-1, gpu-2 and 1,000 more"
