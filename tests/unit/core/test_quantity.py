"""Quantities of memory and units, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.quantity import format_quantity, parse_quantity
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
    assert parse_quantity(text) == size


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
        parse_quantity(text)


@pytest.mark.parametrize("family", ["1Gi", "1G"])
@given(size=st.integers(0, 2**60))
def test_what_is_written_reads_as_the_same(family: str, size: int) -> None:
    assert parse_quantity(format_quantity(size, like=family)) == size


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
    assert format_quantity(size, like=family) == text


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
    counted = MemoryUnit.parse(unit).units_in(parse_quantity(memory), reserved=parse_quantity(reserved))
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
