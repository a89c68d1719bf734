"""A history: what is done when, as data."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from chaos.operation import Operation
from chaos.operations.table import ALL_KINDS


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One operation in its place."""

    number: int
    round: int
    after: float
    """Seconds after the step before it in its round was begun."""
    operation: Operation


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    round: int
    after: float
    operation: msgspec.Raw


class _Tag(msgspec.Struct, frozen=True):
    kind: str


class UnreadableHistoryError(ValueError):
    """A file that is no history; the text says where."""


def write(path: Path, steps: Iterable[Step]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(step) + b"\n" for step in steps))


def read(path: Path) -> list[Step]:
    """Raises ``UnreadableHistoryError``."""
    lines = path.read_bytes().splitlines()
    return [_step(line, number) for number, line in enumerate(lines, start=1) if line.strip()]


def _step(text: bytes, number: int) -> Step:
    try:
        line = msgspec.json.decode(text, type=_Line)
        kind = msgspec.json.decode(line.operation, type=_Tag).kind
        operation = msgspec.json.decode(line.operation, type=_TYPES[kind])
    except (msgspec.DecodeError, KeyError) as error:
        raise UnreadableHistoryError(f"line {number} is no step of a history: {error}") from error
    return Step(number=line.number, round=line.round, after=line.after, operation=operation)


def rounds(steps: Sequence[Step]) -> list[list[Step]]:
    """Returns the steps of each round, in order."""
    return [list(group) for _, group in groupby(steps, key=lambda step: step.round)]


_TYPES = {kind.name: kind.operation for kind in ALL_KINDS}
