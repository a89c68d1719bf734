"""Quantities of memory, units, and sums of CPU and memory: exact, and written as Kubernetes writes them."""

import time
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.quantity import MAX_AMOUNT, format_memory, parse_memory, read_amount, sum_amounts
from gpushare_core.placement.units import MemoryUnit


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("1024", 1024, id="bytes"),
        pytest.param("1k", 1000, id="kilo"),
        pytest.param("1Ki", 1024, id="kibi"),
        pytest.param("100M", 10**8, id="mega"),
        pytest.param("16Gi", 16 * 2**30, id="gibi"),
        pytest.param("1.5Gi", 3 * 2**29, id="fraction"),
        pytest.param("0.1G", 10**8, id="decimal fraction"),
        pytest.param("2Ti", 2**41, id="tebi"),
        pytest.param("1P", 10**15, id="peta"),
    ],
)
def test_a_quantity_is_so_many_bytes(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Gi",
        "-1Gi",
        "1 Gi",
        "1gi",
        "1GiB",
        "1e3",
        "0x10",
        ".5Gi",
        "1.",
        "1.5",
        "0.0001k",
        "\uff11Gi",
        "1Gi\n",
    ],
)
def test_what_is_no_whole_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a (quantity|whole number)"):
        parse_memory(text)


@pytest.mark.parametrize("family", ["1Gi", "1G"])
@given(size=st.integers(0, 2**60))
def test_what_is_written_reads_as_the_same(family: str, size: int) -> None:
    assert parse_memory(format_memory(size, like=family)) == size


@pytest.mark.parametrize(
    ("size", "family", "text"),
    [
        pytest.param(0, "1Gi", "0", id="nothing"),
        pytest.param(1536 * 2**20, "1Gi", "1536Mi", id="largest suffix that divides"),
        pytest.param(10**9, "1Gi", "1000000000", id="other family"),
        pytest.param(10**9, "1M", "1G", id="decimal"),
    ],
)
def test_a_quantity_is_written_in_its_family(size: int, family: str, text: str) -> None:
    assert format_memory(size, like=family) == text


@pytest.mark.parametrize(
    ("unit", "memory", "reserved", "units"),
    [
        pytest.param("1Gi", "16Gi", "0", 16, id="even"),
        pytest.param("3Gi", "16Gi", "0", 5, id="the rest stays unused"),
        pytest.param("1Gi", "16Gi", "512Mi", 15, id="reserved comes off first"),
        pytest.param("1M", "32G", "0", 32_000, id="fine"),
        pytest.param("1Gi", "512Mi", "0", 0, id="card smaller than a unit"),
        pytest.param("1Gi", "1Gi", "2Gi", 0, id="all reserved"),
        pytest.param("1G", "1Gi", "0", 1, id="families mixed"),
    ],
)
def test_a_card_has_so_many_units(unit: str, memory: str, reserved: str, units: int) -> None:
    counted = MemoryUnit.parse(unit).units_in(parse_memory(memory), reserved=parse_memory(reserved))
    assert counted == units


@given(st.sampled_from(["1Gi", "256Mi", "100M", "3Gi"]), st.integers(0, 2**42), st.integers(0, 2**42))
def test_units_never_exceed_the_memory(text: str, memory: int, reserved: int) -> None:
    unit = MemoryUnit.parse(text)
    units = unit.units_in(memory, reserved=reserved)
    assert 0 <= units * unit.size <= memory
    assert (units + 1) * unit.size > memory - reserved


@pytest.mark.parametrize("text", ["0", "0Gi", "much"])
def test_a_unit_is_more_than_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"more than nothing|is not a quantity"):
        MemoryUnit.parse(text)


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


def test_a_pod_of_thousands_of_containers_is_not_remembered() -> None:
    """Anybody may create such pods, and many of them: each has amounts of its own."""
    tracemalloc.start()
    try:
        for pod in range(100):
            assert sum_amounts(f"{pod}{number}m" for number in range(2000))
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("amount", ["", "x", "-1", "1mi", "1 Gi", "1e999", "٣", "1.2.3", "9" * 50, True])
def test_what_nobody_can_read_is_more_than_there_is(amount: object) -> None:
    assert read_amount(amount) == MAX_AMOUNT


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        pytest.param("+4", 4, id="a sign"),
        pytest.param("4e000", 4, id="zeros of an exponent"),
        pytest.param("00004", 4, id="zeros in front"),
        pytest.param("4." + "0" * 10_000, 4, id="zeros behind"),
        pytest.param("4." + "0" * 10_000 + "1", 4 + Fraction(1, 10**9), id="a little more is rounded up"),
        pytest.param("4" + "0" * 10_000 + "e-10000", 4, id="an exponent that takes the zeros back"),
        pytest.param("0." + "0" * 10_000 + "4e10001", 4, id="an exponent that brings the digit forward"),
        pytest.param("1e-99999999", Fraction(1, 10**9), id="very little is a billionth"),
        pytest.param("1e99999999", MAX_AMOUNT, id="very much is capped"),
        pytest.param("9" * 100_000, MAX_AMOUNT, id="more digits than Python reads"),
        pytest.param("1e" + "9" * 100_000, MAX_AMOUNT, id="an exponent of more digits than Python reads"),
        pytest.param("8Ei", MAX_AMOUNT, id="one more than 64 bits hold"),
        pytest.param("-0", 0, id="nothing with a sign"),
        pytest.param("Ki", 0, id="a suffix alone"),
        pytest.param(None, 0, id="null"),
        pytest.param(1e22, MAX_AMOUNT, id="a number of JSON"),
    ],
)
def test_an_amount_is_read_as_kubernetes_reads_it(amount: object, expected: Fraction) -> None:
    assert read_amount(amount) == expected


def test_long_amounts_are_read_as_fast_as_short_ones() -> None:
    """Kubernetes keeps as many digits as fit into a pod."""
    begun = time.process_time()
    for text in ("9" * 10**6, "0" * 10**6 + "1", "1." + "0" * 10**6 + "1", "1e" + "9" * 10**6):
        read_amount(text)
    assert time.process_time() - begun < 1


def test_long_amounts_are_not_remembered() -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            sum_amounts([f"{number}." + "0" * 100_000])
        assert tracemalloc.get_traced_memory()[0] < 2**20
    finally:
        tracemalloc.stop()


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=5), st.sampled_from(["m", "", "k"]))
def test_sums_are_exact(numbers: list[int], suffix: str) -> None:
    scale = {"m": Fraction(1, 1000), "": Fraction(1), "k": Fraction(1000)}[suffix]
    total = sum_amounts([f"{number}{suffix}" for number in numbers])
    assert sum_amounts([total]) == total
    assert total == sum_amounts([f"{int(sum(numbers) * scale * 1000)}m"])
