"""A history follows from its seed alone, begins with every shorter one, and is data."""

from collections import Counter
from pathlib import Path

import pytest
from chaos.operation import Fault
from chaos.operations.table import KINDS
from chaos.plan.generator import FAULTS, OPERATIONS, history
from chaos.plan.history import UnreadableHistoryError, read, rounds, write
from hypothesis import given
from hypothesis import strategies as st

seeds = st.integers(0, 2**32)


@given(seeds, st.integers(0, 120), st.integers(0, 120))
def test_a_longer_history_begins_with_every_shorter_one(seed: int, first: int, second: int) -> None:
    shorter, longer = sorted((first, second))
    assert history(seed, longer, KINDS)[:shorter] == history(seed, shorter, KINDS)


@given(seeds)
def test_written_and_read_it_is_the_same(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path, steps = tmp_path_factory.mktemp("history") / "history.jsonl", history(seed, 100, KINDS)
    write(path, steps)
    assert read(path) == steps


def test_every_kind_comes_up() -> None:
    drawn = Counter(step.operation.kind for step in history(1, 20_000, KINDS))
    assert drawn.keys() == {kind.name for kind in KINDS}


def test_no_kind_has_the_name_of_another() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@given(seeds)
def test_rounds_have_few_faults_and_none_that_touch_the_same(seed: int) -> None:
    *whole, _ = rounds(history(seed, 400, KINDS))
    for steps in whole:
        faults = [step.operation for step in steps if isinstance(step.operation, Fault)]
        assert len(faults) <= max(FAULTS)
        assert len(steps) - len(faults) <= max(OPERATIONS)
        touched = [touch for step in steps for touch in step.operation.touches]
        assert len(touched) == len(set(touched))


@given(seeds)
def test_faults_are_bounded(seed: int) -> None:
    for step in history(seed, 300, KINDS):
        if isinstance(step.operation, Fault):
            assert 0 <= step.operation.seconds <= 120


@given(seeds)
def test_no_kind_comes_more_often_than_its_limit(seed: int) -> None:
    drawn = Counter(step.operation.kind for step in history(seed, 600, KINDS))
    assert all(drawn[kind.name] <= kind.at_most for kind in KINDS)


@pytest.mark.parametrize(
    "line",
    ['{"number": 1}', "no JSON", '{"number":1,"round":0,"after":0,"operation":{"kind":"pod.nothing"}}'],
)
def test_a_file_that_is_no_history_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "history.jsonl"
    write(path, history(1, 2, KINDS))
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(UnreadableHistoryError, match="line 3"):
        read(path)
