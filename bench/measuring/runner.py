"""Runs rows one after the other. One that fails says why, and the others are measured all the same."""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

from bench.measuring.figures import Figure, Outcome

S = TypeVar("S")
MAX_REASON = 300
"""Characters of a reason: it has to fit a terminal."""


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """One row of the table of targets. ``deadline`` is in seconds."""

    name: str
    title: str
    measure: Callable[[S], Awaitable[Sequence[Figure]]]
    deadline: float = 120.0


@dataclass(frozen=True, slots=True)
class Stage(Generic[S]):
    """What several rows are measured on, such as a cluster; entered once. ``deadline``: to be entered."""

    name: str
    entered: Callable[[], AbstractAsyncContextManager[S]]
    rows: tuple[Row[S], ...]
    deadline: float = 300.0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows are asked for, by names such as ``storm`` and ``engine-*``; none in ``only``: all."""

    only: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        return not _is_one_of(name, self.skip) and (not self.only or _is_one_of(name, self.only))


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def names(text: str) -> frozenset[str]:
    """Returns the names in a list with commas."""
    return frozenset(filter(None, (part.strip() for part in text.split(","))))


def unknown(selection: Selection, known: Collection[str]) -> list[str]:
    """Returns the names that are no row's."""
    asked = selection.only | selection.skip
    return sorted(pattern for pattern in asked if not any(fnmatchcase(name, pattern) for name in known))


def selected(stages: Iterable[Stage[Any]], selection: Selection) -> list[Stage[Any]]:
    """Returns the stages with the rows that are asked for; those without any are not entered."""
    narrowed = (
        Stage(
            stage.name,
            stage.entered,
            tuple(row for row in stage.rows if selection.has(row.name)),
            stage.deadline,
        )
        for stage in stages
    )
    return [step for step in narrowed if step.rows]


async def run(stages: Iterable[Stage[Any]], tell: Callable[[Outcome], None]) -> list[Outcome]:
    """Returns the outcome of each row; ``tell`` has each as soon as it is there."""
    outcomes: list[Outcome] = []
    for stage in stages:
        async with aclosing(_of_stage(stage)) as found:
            async for outcome in found:
                tell(outcome)
                outcomes.append(outcome)
    return outcomes


async def _of_stage(stage: Stage[Any]) -> AsyncGenerator[Outcome, None]:
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(stage.deadline):
                entered = await stack.enter_async_context(_left_in_any_case(stage))
        except Exception as error:  # whatever it is, the other stages are measured
            problem = _problem(error, f"not ready after {stage.deadline:g} s")
            for row in stage.rows:
                yield Outcome(row.name, row.title, stage.name, problem=f"{stage.name}: {problem}")
            return
        for row in stage.rows:
            yield await _outcome(row, stage.name, entered)


@asynccontextmanager
async def _left_in_any_case(stage: Stage[S]) -> AsyncIterator[S]:
    """What cannot be left in good order is told: its figures stay."""
    async with AsyncExitStack() as stack:
        entered = await stack.enter_async_context(stage.entered())
        yield entered
        try:
            await stack.aclose()
        except Exception as error:  # the figures are there already
            print(f"{stage.name}: {reason(error)}", file=sys.stderr, flush=True)


async def _outcome(row: Row[S], stage: str, entered: S) -> Outcome:
    begun = time.monotonic()
    figures: tuple[Figure, ...] = ()
    try:
        async with asyncio.timeout(row.deadline):
            figures = tuple(await row.measure(entered))
        problem = "" if figures else "it gave no figures"
    except Exception as error:  # whatever it is, the other rows are measured
        problem = _problem(error, f"not done after {row.deadline:g} s")
    return Outcome(row.name, row.title, stage, figures, problem, time.monotonic() - begun)


def _problem(error: Exception, late: str) -> str:
    """``late``: what to say of a deadline that is over, which says nothing itself."""
    return late if isinstance(error, TimeoutError) and not str(error) else reason(error)


def reason(error: BaseException) -> str:
    """Returns one line that says what went wrong: of a group of errors its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:MAX_REASON] if text else type(error).__name__
