"""Units that stand one after the other are decoded as a whole, as they would be one by one."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_plugin.decide.unit_ids import CAPACITY, SHORT, encode_id
from gpushare_plugin.decide.unit_runs import UnitRuns

NUMBERS = st.lists(st.integers(0, CAPACITY - 1) | st.sampled_from(sorted(SHORT)))
TAIL = b"\x1a\x02\x0a\x00"


def head(length: int) -> bytes:
    return b"\n" + bytes([length])


def run_of(numbers: list[int], tail: bytes) -> bytes:
    return b"".join(head(len(each)) + each + tail for each in (encode_id(n).encode() for n in numbers))


@pytest.mark.parametrize("tail", [b"", TAIL], ids=["alone", "with something after each"])
@given(numbers=NUMBERS, before=st.binary(max_size=9), after=st.sampled_from([b"", b"\n", b"\x12\x03AAB"]))
def test_units_lead_back_to_their_numbers(
    numbers: list[int], before: bytes, after: bytes, tail: bytes
) -> None:
    runs, run = UnitRuns(head, tail), run_of(numbers, tail)
    content = before + run + after
    end = runs.end(content, len(before), len(content))
    assert content[len(before) : end] == run
    assert runs.numbers(run) == array("I", numbers)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b"\n\x030-5", id="one of Volcano's"),
        pytest.param(b"\n\x02AA", id="two letters"),
        pytest.param(b"\n\x03A.A", id="outside the alphabet"),
        pytest.param(b"\n\x04AAAA", id="too long"),
        pytest.param(b"\n\x03\xc3\xa9A", id="not ASCII"),
        pytest.param(b"\n\x03AA", id="cut off"),
    ],
)
def test_a_run_ends_before_what_is_no_unit_of_ours(other: bytes) -> None:
    runs, run = UnitRuns(head), run_of([1, 212992, 5], b"")
    content = run + other + run
    assert runs.end(content, 0, len(content)) == len(run)
    assert runs.end(content, len(run), len(content)) == len(run)


def test_a_run_ends_where_its_message_does() -> None:
    run = run_of([1, 2, 3], b"")
    assert UnitRuns(head).end(run, 0, 10) == 10
    assert UnitRuns(head).end(run, 0, 12) == 10


def test_a_short_run_has_bytes_of_other_lengths() -> None:
    (short, *_) = sorted(SHORT)
    assert UnitRuns(head, TAIL).numbers(run_of([7, short, 8], TAIL)) == array("I", [7, short, 8])
