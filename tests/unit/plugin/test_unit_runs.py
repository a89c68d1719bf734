"""Units that stand one after the other are decoded as a whole, as they would be one by one."""

import re
from array import array

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpushare_plugin.decide.units.unit_ids import ALPHABET, CAPACITY, SHORT, encode_id, known_numbers
from gpushare_plugin.decide.units.unit_runs import UnitRuns

NUMBERS = st.lists(st.integers(0, CAPACITY - 1) | st.sampled_from(sorted(SHORT)))
TAIL = b"\x1a\x02\x0a\x00"


def head(length: int) -> bytes:
    return b"\n" + bytes([length])


def run_of(numbers: list[int], tail: bytes) -> bytes:
    return b"".join(
        head(len(unit_id)) + unit_id + tail for unit_id in (encode_id(n).encode() for n in numbers)
    )


@pytest.mark.parametrize("tail", [b"", TAIL], ids=["alone", "with something after each"])
@given(numbers=NUMBERS, before=st.binary(max_size=9), after=st.sampled_from([b"", b"\n", b"\x12\x03AAB"]))
def test_units_lead_back_to_their_numbers(
    numbers: list[int], before: bytes, after: bytes, tail: bytes
) -> None:
    runs, run = UnitRuns(head, tail), run_of(numbers, tail)
    content = before + run + after
    assert runs.read(content, len(before), len(content)) == (array("I", numbers), len(before) + len(run))


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
    assert runs.read(content, 0, len(content)) == (array("I", [1, 212992, 5]), len(run))
    assert runs.read(content, len(run), len(content)) == (array("I"), len(run))


def test_a_run_ends_where_its_message_does() -> None:
    run = run_of([1, 2, 3], b"")
    assert UnitRuns(head).read(run, 0, 10) == (array("I", [1, 2]), 10)
    assert UnitRuns(head).read(run, 0, 12) == (array("I", [1, 2]), 10)


def test_a_short_run_has_bytes_of_other_lengths() -> None:
    (short, *_) = sorted(SHORT)
    run = run_of([7, short, 8], TAIL)
    assert UnitRuns(head, TAIL).read(run, 0, len(run)) == (array("I", [7, short, 8]), len(run))


def one_by_one(content: bytes, tail: bytes) -> tuple["array[int]", int]:
    """What ``UnitRuns.read`` says, by one ID after the other."""
    numbers, at = array("I"), 0
    for entry in re.finditer(rb"\n([\x02\x03])", content):
        length = entry[1][0]
        text = content[entry.end() : entry.end() + length]
        end = entry.end() + length + len(tail)
        known = [*known_numbers([text.decode("latin-1")])]
        is_whole = len(text) == length and content[entry.end() + length : end] == tail
        if entry.start() != at or not is_whole or not known:
            break
        numbers.extend(known)
        at = end
    return numbers, at


@pytest.mark.parametrize("other", [b"0-1", b"A:B"], ids=["Volcano's", "nobody's"])
def test_the_rest_is_not_looked_at_again_after_each_id_that_is_none_of_ours(
    other: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of 250,000 units with a thousand others among them took seconds."""
    runs, looked_at = UnitRuns(head, TAIL), list[int]()
    numbers = UnitRuns._numbers

    def counted(runs: UnitRuns, run: bytes) -> "array[int] | None":
        looked_at.append(len(run))
        return numbers(runs, run)

    monkeypatch.setattr(UnitRuns, "_numbers", counted)
    alien = head(len(other)) + other + TAIL
    content = (run_of([*range(4096, 5096)], TAIL) + alien) * 200
    at, found = 0, 0
    while at < len(content):
        units, at = runs.read(content, at, len(content))
        found, at = found + len(units), at + len(alien)
    assert found == 200_000
    assert sum(looked_at) < 10 * len(content)


LETTERS = st.sampled_from([*ALPHABET, "-", "0", "9", "+", "/", "=", "!", "\x00", "\xff"])
IDS = st.integers(0, CAPACITY - 1).map(encode_id) | st.text(LETTERS, min_size=1, max_size=4)


@pytest.mark.parametrize("tail", [b"", TAIL], ids=["alone", "with something after each"])
@given(
    ours=NUMBERS,
    many=st.integers(1, 40),
    ids=st.lists(IDS, max_size=40),
    cut=st.integers(0, 9),
)
@example(ours=[], many=1, ids=["20A"], cut=1)
def test_any_ids_are_read_as_they_would_be_one_by_one(
    ours: list[int], many: int, ids: list[str], cut: int, tail: bytes
) -> None:
    others = b"".join(head(len(identifier)) + identifier.encode("latin-1") + tail for identifier in ids)
    content = run_of(ours * many, tail) + others
    content = content[: len(content) - cut]
    assert UnitRuns(head, tail).read(content, 0, len(content)) == one_by_one(content, tail)
