"""Rows fail by themselves: the others are measured."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from bench.measuring.figures import Figure, NotMeasuredError, Outcome
from bench.measuring.runner import Row, Selection, Stage, names, reason, run, selected, unknown


class Place:
    """What rows are measured on: it notes what happens."""

    def __init__(self, *, fails: str = "") -> None:
        self.happened: list[str] = []
        self.is_entered = asyncio.Event()
        self._fails = fails

    @asynccontextmanager
    async def entered(self) -> AsyncIterator["Place"]:
        if self._fails == "enter":
            raise RuntimeError("no memory")
        if self._fails == "late":
            await asyncio.Event().wait()
        self.happened.append("entered")
        self.is_entered.set()
        try:
            yield self
        finally:
            self.happened.append("left")
        if self._fails == "leave":
            raise RuntimeError("it does not end")


async def good(place: Place) -> Sequence[Figure]:
    place.happened.append("measured")
    return [Figure("x", 1.0)]


async def bad(_: Place) -> Sequence[Figure]:
    raise NotMeasuredError("the extender\nis gone")


async def endless(_: Place) -> Sequence[Figure]:
    await asyncio.Event().wait()
    return []


async def empty(_: Place) -> Sequence[Figure]:
    return []


def stage(place: Place, *rows: Row[Place], deadline: float = 60.0) -> Stage[Place]:
    return Stage("a place", place.entered, rows, deadline)


def row(name: str, measure: Callable[[Place], object], deadline: float = 60.0) -> Row[Place]:
    return Row(name, name.title(), measure, deadline)  # type: ignore[arg-type]


async def outcomes(*stages: Stage[Place]) -> list[Outcome]:
    told: list[Outcome] = []
    found = await run(stages, told.append)
    assert told == found, "each is told as soon as it is there"
    return found


async def test_a_row_that_fails_does_not_stop_the_others() -> None:
    place = Place()
    found = await outcomes(stage(place, row("bad", bad), row("good", good)))
    assert [(result.row, result.problem) for result in found] == [
        ("bad", "NotMeasuredError: the extender is gone"),
        ("good", ""),
    ]
    assert place.happened == ["entered", "measured", "left"]


@pytest.mark.parametrize(
    ("measure", "problem"), [(endless, "not done after 0.05 s"), (empty, "it gave no figures")]
)
async def test_what_gives_nothing_is_not_measured(measure: Callable[[Place], object], problem: str) -> None:
    (found,) = await outcomes(stage(Place(), row("it", measure, deadline=0.05)))
    assert (found.is_measured, found.problem) == (False, problem)


@pytest.mark.parametrize(
    ("fails", "problem"),
    [("enter", "a place: RuntimeError: no memory"), ("late", "a place: not ready after 0.05 s")],
)
async def test_without_its_place_no_row_is_measured_and_the_next_stage_is(fails: str, problem: str) -> None:
    broken = stage(Place(fails=fails), row("one", good), row("two", good), deadline=0.05)
    found = await outcomes(broken, stage(Place(), row("three", good)))
    assert [(result.row, result.problem) for result in found] == [
        ("one", problem),
        ("two", problem),
        ("three", ""),
    ]


async def test_a_place_that_cannot_be_left_keeps_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    found = await outcomes(stage(Place(fails="leave"), row("one", good)), stage(Place(), row("two", good)))
    assert [(result.row, result.is_measured) for result in found] == [("one", True), ("two", True)]
    assert "a place: RuntimeError: it does not end" in capsys.readouterr().err


async def test_a_row_that_is_interrupted_leaves_its_place() -> None:
    place = Place()
    running = asyncio.create_task(outcomes(stage(place, row("it", endless))))
    await asyncio.wait_for(place.is_entered.wait(), 60)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert place.happened == ["entered", "left"]


@pytest.mark.parametrize(
    ("only", "skip", "left"),
    [
        pytest.param("", "", [["a", "b"], ["c"]], id="all"),
        pytest.param("", "b", [["a"], ["c"]], id="all but one"),
        pytest.param("c, a", "", [["a"], ["c"]], id="some, in their order"),
        pytest.param("a,b", "a", [["b"]], id="a place without rows is not entered"),
    ],
)
def test_which_rows_are_asked_for(only: str, skip: str, left: list[list[str]]) -> None:
    stages = [stage(Place(), row("a", good), row("b", good)), stage(Place(), row("c", good))]
    found = selected(stages, Selection(names(only), names(skip)))
    assert [[result.name for result in one.rows] for one in found] == left


def test_names_that_are_no_rows() -> None:
    assert unknown(Selection(names("a,x"), names("y")), ["a", "b"]) == ["x", "y"]


def test_rows_that_begin_alike_are_named_together() -> None:
    selection = Selection(names("engine-*"), names("engine-b*"))
    assert [name for name in ("a", "engine-a", "engine-b") if selection.has(name)] == ["engine-a"]
    assert unknown(Selection(names("engine-*"), names("engines-*")), ["a", "engine-a"]) == ["engines-*"]


def test_of_several_errors_the_first_is_the_reason() -> None:
    group = ExceptionGroup("two", [ExceptionGroup("one", [ValueError("first")]), ValueError("second")])
    assert reason(group) == "ValueError: first"
    assert reason(TimeoutError()) == "TimeoutError"
