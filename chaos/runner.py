"""Plays a history: faults and other operations side by side, then all is healed, quiet, and audited."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from chaos.advice import end_pods_without_units
from chaos.audit.auditor import Auditor
from chaos.deadlines import DEADLINES, Deadlines
from chaos.expectations import Expectations
from chaos.findings import Finding, Findings
from chaos.operation import BreachError, Fault, NothingHitError
from chaos.plan.history import Step, rounds
from chaos.quiet import NotQuietError, Quiet, await_quiet
from chaos.record import DONE, MISSED, Record, Recovery
from chaos.world import World
from gpushare_core.audit.difference import Difference, DifferenceKind, LastingDifferences
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_localcluster.errors import LocalClusterError

THOROUGH = 5
"""Rounds after which waiting pods are checked, as at the end: that takes longer than comparing all books."""
RESTFUL = 25
"""Rounds after which nothing is done for a while, as at the end: any writes are then counted."""
PAUSE = 0.2
"""Seconds between two looks."""
MAX_TOLD = 4
"""Differences in one sentence: those that were seen last."""


class FaultStaysError(Exception):
    """A fault cannot be ended; the text says which, and why."""


class AwaitQuiet(Protocol):
    """As ``chaos.quiet.await_quiet``."""

    async def __call__(self, world: World, /, *, seconds: float) -> Quiet: ...


class Runner:
    """Plays one history on one world. ``say``: prints a line of progress."""

    def __init__(
        self,
        world: World,
        auditor: Auditor,
        expectations: Expectations,
        *,
        findings: Findings,
        record: Record,
        say: Callable[[str], None],
        deadlines: Deadlines = DEADLINES,
        quiet: AwaitQuiet = await_quiet,
    ) -> None:
        self._world = world
        self._auditor = auditor
        self._expectations = expectations
        self._findings = findings
        self._record = record
        self._say = say
        self._deadlines = deadlines
        self._await_quiet = quiet
        self._told = set[tuple[str, ...]]()

    async def play(self, steps: Sequence[Step]) -> None:
        """Ends early at the first finding, unless they are collected."""
        for number, steps_of_round in enumerate(rounds(steps), start=1):
            if self._findings.are_enough:
                return
            await self._round(steps_of_round)
            if number % THOROUGH == 0:
                await self.expect()
            if number % RESTFUL == 0:
                await self._expectations.nobody_writes_for_nothing()
        await self.expect()
        await self._expectations.nobody_writes_for_nothing()
        await self._expectations.hardly_a_pod_is_refused()

    async def expect(self) -> None:
        """Compares the cluster with the model, and with what our programs report, in quiet."""
        await self._expectations.no_pod_is_lost()
        await self._expectations.no_pod_waits_that_has_room()
        await self._expectations.nobody_is_alarmed()

    async def settle(self, *, faults: Sequence[str] = ()) -> None:
        """Waits until the cluster is quiet and all books agree, and notes how long that took after
        ``faults``."""
        try:
            quiet = await self._await_quiet(self._world, seconds=self._deadlines.quiet)
            agreement = await self._agreement(quiet.placed)
        except NotQuietError as error:
            self._find("quiet", str(error))
            return
        self._record.recoveries.append(Recovery(tuple(faults), quiet.seconds, agreement))

    async def _round(self, steps: Sequence[Step]) -> None:
        begun, number = time.monotonic(), steps[0].round
        healing = [asyncio.create_task(self._last(fault)) for fault in await self._operate(steps)]
        for task in healing:
            await task
        faults = [step.operation.kind for step in steps if isinstance(step.operation, Fault)]
        await self.settle(faults=faults)
        self._say(
            f"round {number}: {len(steps)} operations to number {steps[-1].number},"
            f" {time.monotonic() - begun:.1f} s, faults: {', '.join(faults) or 'none'}"
        )

    async def _operate(self, steps: Sequence[Step]) -> list[tuple[Fault, float]]:
        """Begins every operation at its time; returns the faults that were begun, each with its end."""
        faults, running = list[tuple[Fault, float]](), list[asyncio.Task[None]]()
        for step in steps:
            await asyncio.sleep(step.after)
            running.append(asyncio.create_task(self._run(step)))
            if isinstance(step.operation, Fault):
                faults.append((step.operation, time.monotonic() + step.operation.seconds))
        for task in running:
            await task
        return faults

    async def _run(self, step: Step) -> None:
        """What the API server answers is an outcome; so is that it does not."""
        operation, begun = step.operation, time.monotonic()
        try:
            await asyncio.wait_for(operation.run(self._world), self._deadlines.operation)
            outcome = DONE
        except BreachError as error:
            self._find(error.rule, str(error))
            outcome = DONE
        except NothingHitError as error:
            outcome = f"{MISSED}: {error}"
        except (ApiError, UnreachableError, LocalClusterError, TimeoutError) as error:
            outcome = f"{type(error).__name__}: {error}"
        self._record.note(step, outcome, seconds=time.monotonic() - begun)

    async def _last(self, fault: tuple[Fault, float]) -> None:
        operation, until = fault
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        try:
            await asyncio.wait_for(operation.heal(self._world), self._deadlines.healing)
        except NothingHitError:
            self._record.missed[operation.kind] += 1
        except TimeoutError as error:
            seconds = self._deadlines.healing
            raise FaultStaysError(f"{operation.kind} cannot be ended within {seconds:g} s") from error
        except Exception as error:
            raise FaultStaysError(f"{operation.kind} cannot be ended: {error}") from error

    async def _agreement(self, placed: frozenset[str]) -> float:
        """Returns the seconds until a reading began that showed all books agree, from when quiet began with
        the pods ``placed`` (UIDs) on nodes.

        It may end by itself: a controller makes another pod, kube-scheduler tries one again. Then it is
        waited for anew, also where the pod runs already at the next look; but what differs at every look of
        many quiet moments is found, however restless it is. Books that cannot be read yet keep it from
        beginning. Raises ``NotQuietError``.
        """
        asked = begun = read = time.monotonic()
        restful, standing = 0.0, LastingDifferences(self._deadlines.standing)
        told = dict[str, float]()
        stood = dict[Difference, None]()
        while differences := await self._new_differences():
            told |= {str(difference): read - begun for difference in differences}
            ended = await end_pods_without_units(self._world, differences)
            stood.update(
                (difference, None) for difference in standing.look(_comparable(differences), now=restful)
            )
            if (waited := time.monotonic() - asked) > self._deadlines.patience:
                for difference in differences:
                    self._told.add(difference.identity)
                    self._find(difference.rule, f"after {waited:.0f} s still: {difference}")
                return waited
            await asyncio.sleep(PAUSE)
            quiet = await self._await_quiet(self._world, seconds=self._deadlines.quiet)
            if ended or not quiet.at_once or quiet.placed != placed or not _comparable(differences):
                begun, placed = time.monotonic(), quiet.placed
                told.clear()
            restful += time.monotonic() - read if quiet.at_once else 0.0
            read = time.monotonic()
        seconds = read - begun
        if seconds > self._deadlines.agreement:
            newest = sorted(told.items(), key=lambda difference: difference[1])[-MAX_TOLD:]
            last = "; ".join(f"{difference} (until {at:.1f} s)" for difference, at in newest)
            self._find("I3", f"agreed only {seconds:.1f} s after quiet: {last}")
        else:
            for lasting in stood:
                self._find(lasting.rule, f"stood though all was quiet time and again: {lasting}")
        return seconds

    def _find(self, rule: str, sentence: str) -> None:
        self._findings.add(Finding(rule=rule, sentence=sentence))

    async def _new_differences(self) -> list[Difference]:
        """Returns the findings that are not reported already: where all are collected, the run goes on after
        them."""
        return [
            difference
            for difference in await self._auditor.differences()
            if difference.identity not in self._told
        ]


def _comparable(differences: Sequence[Difference]) -> list[Difference]:
    """Returns those between books that were read."""
    return [difference for difference in differences if difference.kind is not DifferenceKind.UNREADABLE]
