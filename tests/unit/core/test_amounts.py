"""Sums of CPU and memory are exact, and written as Kubernetes writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.amounts import sum_amounts


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        pytest.param([], "0", id="nothing"),
        pytest.param(["0"], "0", id="zero"),
        pytest.param(["500m", "500m"], "1", id="halves make a whole"),
        pytest.param(["500m", "1"], "1500m", id="not a whole number"),
        pytest.param(["0.1", "0.2"], "300m", id="no binary fractions"),
        pytest.param(["1.5"], "1500m", id="a decimal point"),
        pytest.param(["2000"], "2k", id="canonical"),
        pytest.param(["256Mi", "768Mi"], "1Gi", id="binary"),
        pytest.param(["1.5Gi", "100Mi"], "1636Mi", id="binary with a point"),
        pytest.param(["100M", "1G"], "1100M", id="decimal memory"),
        pytest.param(["1Ki", "1"], "1025", id="families mixed"),
        pytest.param(["1e3", "2E-1"], "1000200m", id="exponents"),
        pytest.param(["1E"], "1E", id="exa is no exponent"),
        pytest.param(["100u"], "100u", id="millionths"),
        pytest.param(["0.0000000001"], "1n", id="rounded up"),
    ],
)
def test_the_sum_is(amounts: list[str], total: str) -> None:
    assert sum_amounts(amounts) == total


@pytest.mark.parametrize("amount", ["", "x", "-1", "1mi", "1 Gi", "1e999", "٣", "1.2.3", "9" * 50])
def test_what_is_no_amount_is_refused(amount: str) -> None:
    with pytest.raises(ValueError, match="is not an amount"):
        sum_amounts(["1", amount])


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=5), st.sampled_from(["m", "", "k"]))
def test_sums_are_exact(numbers: list[int], suffix: str) -> None:
    scale = {"m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)}[suffix]
    total = sum_amounts([f"{number}{suffix}" for number in numbers])
    assert sum_amounts([total]) == total
    assert total == sum_amounts([f"{int(sum(numbers) * scale * 1000)}m"])
