"""What a run did and how long everything took."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from chaos.operation import Fault, Operation
from chaos.plan.history import Step

MISSED = "hit nothing"
"""The outcome of one that found nothing that it could be done to."""
OFTEN = 4
"""Attempts of a kind after which it is suspicious that none succeeded."""
DONE = "done"
"""The outcome of an operation that was carried out, by its response."""


class Recovery(NamedTuple):
    """After a round's faults were healed."""

    faults: tuple[str, ...]
    quiet: float
    """Seconds until all programs served and no pod was on its way."""
    agreement: float
    """Seconds from then on until all books agreed."""


@dataclass(slots=True)
class Record:
    """Filled while the history is played."""

    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    """Kind -> how often which outcome."""
    recoveries: list[Recovery] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)
    """Kind -> seconds of its longest operation."""

    done: list[tuple[Operation, bool]] = field(default_factory=list)
    """Every operation in the order of their ends, and whether it was done."""
    missed: Counter[str] = field(default_factory=Counter)
    """Kind -> how often it hit nothing."""
    last_number: int = 0
    """Of the last operation that was begun."""

    def note(self, step: Step, outcome: str, *, seconds: float) -> None:
        kind = step.operation.kind
        self.last_number = max(self.last_number, step.number)
        (self.faults if isinstance(step.operation, Fault) else self.operations)[kind] += 1
        self.done.append((step.operation, outcome == DONE))
        self.outcomes.setdefault(kind, Counter())[_short(outcome)] += 1
        self.slowest[kind] = max(self.slowest.get(kind, 0.0), seconds)
        if outcome.startswith(MISSED):
            self.missed[kind] += 1

    def in_vain(self) -> Iterator[str]:
        """Yields a sentence for every kind that was tried often and never done: it tests nothing."""
        for kind, said in sorted(self.outcomes.items()):
            tried = said.total()
            if tried >= OFTEN and (not said[DONE] or self.missed[kind] == tried):
                answers = ", ".join(f"{text} {times}" for text, times in said.most_common(3))
                yield f"{kind} was tried {tried} times and never in force: {answers}; see why, or take it out"


def _short(outcome: str) -> str:
    """Names of pods make every answer another one."""
    return outcome[:100].partition('"')[0]
