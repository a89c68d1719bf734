"""Draws a history from a seed."""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from chaos.operation import Kind, Operation
from chaos.plan.history import Step
from chaos.plan.known import Known

OPERATIONS = (30, 60)
"""In a round, beside its faults."""
FAULTS = (1, 1, 1, 1, 1, 1, 2, 2, 3, 0)
"""Faults in a round: usually one, so that its effects are known by kind; sometimes none, to compare with."""
GAP = 0.12
"""Seconds between two operations at most; bursts have none."""


def history(seed: int, operations: int, kinds: Sequence[Kind]) -> list[Step]:
    """Returns the first ``operations`` steps of the seed: a longer history begins with every shorter one."""
    return list(islice(_steps(Random(seed), kinds), operations))  # noqa: S311 - no secret, but repeatable


def _steps(random: Random, kinds: Sequence[Kind]) -> Iterator[Step]:
    known, number = Known(), 0
    for round_ in range(1_000_000):
        known.touched.clear()
        for operation in _round(random, known, kinds):
            number += 1
            after = random.choice((0.0, 0.0, round(random.uniform(0, GAP), 3)))
            yield Step(number=number, round=round_, after=after, operation=operation)


def _round(random: Random, known: Known, kinds: Sequence[Kind]) -> list[Operation]:
    """Faults fall at random places among the other operations, the first of them early."""
    ordinary = [kind for kind in kinds if not kind.is_fault]
    turns = [ordinary] * random.randint(*OPERATIONS)
    for place in range(random.choice(FAULTS)):
        turns.insert(random.randint(0, 5 if place == 0 else len(turns)), [k for k in kinds if k.is_fault])
    drawn = (_draw(random, known, turn) for turn in turns)
    return [operation for operation in drawn if operation is not None]


def _draw(random: Random, known: Known, kinds: Sequence[Kind]) -> Operation | None:
    """Returns None where every operation would touch what another one already touches."""
    possible = [kind for kind in kinds if kind.possible(known) and known.counts[kind.name] < kind.at_most]
    while possible:
        kind = random.choices(possible, [_weight(kind, known) for kind in possible])[0]
        operation = kind.draw(random, known)
        if not operation.touches & known.touched:
            known.touched |= operation.touches
            known.counts[kind.name] += 1
            operation.note(known)
            return operation
        possible.remove(kind)
    return None


def _weight(kind: Kind, known: Known) -> float:
    """A fault that was drawn gets a smaller weight: there are more kinds than a short history has faults."""
    return kind.weight / (1 + known.counts[kind.name]) ** 2 if kind.is_fault else kind.weight
