"""Runs a history, audits after every step, and finds the fewest steps that still fail."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.operations import BY_NAME, QUIET, Step
from tests.simulation.virtual_time import run as run_in_virtual_time
from tests.simulation.virtual_time import seconds
from tests.simulation.world import World

from gpushare_core.audit.books import Books
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.differences import differences, released_early

AGREE_WITHIN = 5.0
"""Seconds of quiet after which all books agree."""
SETTLE_WITHIN = 120.0
"""Seconds after which no pod is on its way any more, once nothing is done to the cluster."""
LOOKS = 0.05
"""Seconds between two looks whether it is quiet."""


class DifferentError(Exception):
    """The books differ where they must not; the text says what, and after how many steps."""


class NeverQuietError(Exception):
    """Pods are on their way for ever; the text says which."""


@dataclass(slots=True)
class Outcome:
    """What a run has seen."""

    steps: int = 0
    agreed_after: list[float] = field(default_factory=list)
    """Seconds of quiet until all books agreed, each time."""
    virtual_seconds: float = 0.0


@dataclass(slots=True)
class Run:
    """One history in one world."""

    mode: str
    seed: int
    steps: Sequence[Step]
    outcome: Outcome = field(default_factory=Outcome)
    _before: dict[str, Books] = field(default_factory=dict)
    _known: set[tuple[str, ...]] = field(default_factory=set)

    async def run(self) -> Outcome:
        world = World(self.mode, self.seed)
        world.start()
        await self._quiet(world)
        try:
            for step in self.steps:
                await self._step(world, step)
        finally:
            await world.stop()
        self.outcome.virtual_seconds = seconds()
        return self.outcome

    async def _step(self, world: World, step: Step) -> None:
        if step.name == QUIET:
            await self._quiet(world)
            return
        if step.after:
            await asyncio.sleep(step.after)
        self.audit(world)
        result = BY_NAME[step.name](world, step.a, step.b)
        if result is not None:
            await result
        self.outcome.steps += 1
        world.check_processes()
        self.audit(world)

    def audit(self, world: World) -> None:
        """Safety: what may not be seen, not even while pods are on their way."""
        for name, extender in world.extenders.items():
            books = world.books(extender)
            found = [each for each in differences(books) if each.kind.at_once]
            before = self._before.get(name)
            if before is not None:
                for node, after in books.nodes.items():
                    found += released_early(before.nodes[node], after)
            self._before[name] = books
            self._refuse(found, "at once")

    def _refuse(self, found: Sequence[Difference], when: str) -> None:
        if found:
            texts = "\n  ".join(str(each) for each in found)
            raise DifferentError(f"after {self.outcome.steps} steps, {when}:\n  {texts}")

    async def _quiet(self, world: World) -> None:
        """Faults end; from the moment at which no pod is on its way all books agree within 5 s."""
        await world.heal()
        since = await self._until_quiet(world)
        last = since
        while seconds() - since < AGREE_WITHIN:
            if self._disagreements(world):
                last = seconds()
            await asyncio.sleep(LOOKS * 5)
        self._refuse(self._disagreements(world), f"after {AGREE_WITHIN} s of quiet")
        self.outcome.agreed_after.append(last - since)

    async def _until_quiet(self, world: World) -> float:
        deadline = seconds() + SETTLE_WITHIN
        while on_the_way := [*world.on_the_way()]:
            if seconds() > deadline:
                raise NeverQuietError(f"after {self.outcome.steps} steps: {', '.join(on_the_way)}")
            await asyncio.sleep(LOOKS)
            world.check_processes()
            self.audit(world)
        return seconds()

    def _disagreements(self, world: World) -> list[Difference]:
        found = [each for extender in world.extenders.values() for each in differences(world.books(extender))]
        return sorted({str(each): each for each in found}.values())


def run(mode: str, seed: int, steps: Sequence[Step]) -> Outcome:
    """Returns what was seen. Raises whatever ends the run."""
    logging.disable(logging.CRITICAL)
    random.seed(seed)
    try:
        return run_in_virtual_time(Run(mode, seed, steps).run())
    finally:
        logging.disable(logging.NOTSET)


def failure(mode: str, seed: int, steps: Sequence[Step]) -> Exception | None:
    try:
        run(mode, seed, steps)
    except Exception as error:  # whatever goes wrong is to be told with the steps that lead there
        return error
    return None


def fewest(mode: str, seed: int, steps: Sequence[Step], *, tries: int = 400) -> Sequence[Step]:
    """Returns steps of which hardly one can be left out; fails in the same way."""
    kind = type(failure(mode, seed, steps))
    size = max(1, len(steps) // 2)
    while size and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            shorter = [*steps[:at], *steps[at + size :]]
            tries -= 1
            if isinstance(failure(mode, seed, shorter), kind):
                steps = shorter
            else:
                at += size
        size //= 2
    return steps
