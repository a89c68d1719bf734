"""Runs a history, audits after every step, and finds the fewest steps that still fail."""

import asyncio
import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.simulation.forgotten import forgotten_by, still_different, unexpected, unsaid, with_forgotten
from tests.simulation.go_engine import GoEngines
from tests.simulation.known_pod import KnownPod
from tests.simulation.kubelet import SimulatedKubelet
from tests.simulation.operations import BY_NAME, FAULTS, QUIET, Step
from tests.simulation.static_pods import is_static
from tests.simulation.virtual_time import run as run_in_virtual_time
from tests.simulation.virtual_time import seconds
from tests.simulation.world import World

from gpushare_core.audit.auditor import node_differences, released_early
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.holdings import kubelet_uids
from gpushare_core.audit.records import NodeRecords
from gpushare_plugin.agent import PERIOD

AGREE_WITHIN = 5.0
"""Seconds of quiet after which all books agree."""
SETTLE_WITHIN = 120.0
"""Seconds after the last operation until no pod is starting or ending."""
SERVE_WITHIN = PERIOD + 1.0
"""Seconds after a fault until every program has tried again, and every plugin has read its cards."""
TAKEN_BACK_WITHIN = 15.0
"""Seconds in which a plugin corrects its record of units that were given to another pod meanwhile, also while
requests fail: until then the status alone says that they lie elsewhere.

See tests/component/audit/test_overtaken_record.py.
"""
LOOKS = 0.25
"""Seconds between two looks whether it is quiet."""


class DifferentError(Exception):
    """The books differ where they must agree; the text says what, and after how many steps."""

    def __init__(self, message: str, kinds: frozenset[DifferenceKind]) -> None:
        super().__init__(message)
        self.kinds = kinds


class NeverQuietError(Exception):
    """Pods are on their way for ever; the text says which."""


def may_be_taken_back(seen: Sequence[Difference]) -> list[Difference]:
    """Returns the differences that an overtaken record of the plugin may cause: units that lie elsewhere than
    the container's environment says, and so perhaps a wrong shape."""
    elsewhere = [difference for difference in seen if difference.kind is DifferenceKind.ENVIRONMENT_DIFFERS]
    containers = {(difference.pod, difference.container) for difference in elsewhere}
    shapes = (difference for difference in seen if difference.kind is DifferenceKind.WRONG_SHAPE)
    return [*elsewhere, *(shape for shape in shapes if (shape.pod, shape.container) in containers)]


@dataclass(slots=True)
class Outcome:
    """What a run has seen."""

    steps: int = 0
    agreed_after: list[float] = field(default_factory=list)
    """Seconds of quiet until all books agreed, each time."""
    virtual_seconds: float = 0.0
    writes: int = 0
    """Version of the API server: equal in two runs of one history."""


@dataclass(slots=True)
class Run:
    """One history in one world."""

    mode: str
    seed: int
    steps: Sequence[Step]
    go_engines: GoEngines | None = None
    """What decides where pods go; None: extenders do."""
    outcome: Outcome = field(default_factory=Outcome)
    _before: dict[str, dict[str, tuple[NodeRecords, ...]]] = field(default_factory=dict)
    _static: dict[str, dict[str, KnownPod]] = field(default_factory=dict)
    """Node -> UID -> latest static pod of that UID."""
    _mirrors: dict[str, dict[str, str]] = field(default_factory=dict)
    """Node -> UID of every mirror that was seen -> UID of its static pod."""
    _returned: dict[str, set[str]] = field(default_factory=dict)
    """Node -> static pods that came back in quiet."""
    _had_faults: bool = True
    _audited: dict[tuple[str, str, int], tuple[NodeRecords, list[Difference]]] = field(default_factory=dict)
    """Extender and node -> the books that were audited last, and their differences."""
    _suspects: dict[str, dict[Difference, float]] = field(default_factory=dict)
    """Node -> differences between status and environments, and since when; those that may be corrected."""

    async def run(self) -> Outcome:
        world = World(self.mode, self.seed, go_engines=self.go_engines)
        world.start()
        await self._quiet(world)
        try:
            for step in self.steps:
                await self._step(world, step)
        finally:
            await world.stop()
        self.outcome.virtual_seconds = seconds()
        self.outcome.writes = world.server.version
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
        self._had_faults |= step.name in FAULTS
        world.check_processes()
        self.audit(world)

    def audit(self, world: World) -> None:
        """Checks safety: what must not be seen even while pods start or end."""
        asked = world.scheduler.asks
        before, books = self._before.get(asked), world.books(world.engines[asked])
        after = {name: self._pictures(world, readings) for name, readings in books.nodes.items()}
        self._before = {asked: after}
        for name, simulated in world.nodes.items():
            self._note_returned(name, simulated.kubelet)
            self._note_mirrors(books.nodes[name])
        found: list[Difference] = []
        for node, pictures in after.items():
            if before is not None and before[node] == pictures:
                found += self._standing(node)
                continue
            at_once = [
                node_difference
                for picture in pictures
                for node_difference in node_differences(picture)
                if node_difference.kind.at_once
            ]
            may_pass = may_be_taken_back(at_once)
            found += [difference for difference in at_once if difference not in may_pass]
            found += self._standing(node, may_pass)
            if before is not None:
                found += self._released(node, before[node][-1], pictures[-1])
        self._refuse(found, "at once")

    def _note_returned(self, node: str, kubelet: SimulatedKubelet) -> None:
        present = {uid: pod for uid, pod in kubelet.pods.items() if is_static(pod.body)}
        before = self._static.setdefault(node, {})
        again = ("/".join(pod.name) for uid, pod in present.items() if before.get(uid, pod) is not pod)
        self._returned.setdefault(node, set()).update(again)
        before |= present

    def _note_mirrors(self, books: NodeRecords) -> None:
        mirrors = {uid: own for uid, own in kubelet_uids(books).items() if uid != own}
        self._mirrors.setdefault(books.node, {}).update(mirrors)

    def _released(self, node: str, before: NodeRecords, after: NodeRecords) -> list[Difference]:
        """Not of pods that have come back: a file that comes back makes another pod with the same UID, and
        what the first one had is free when a book has heard of its end, even if that is after the other one
        was admitted."""
        found = released_early(before, after, mirrors=self._mirrors[node])
        return [difference for difference in found if difference.pod not in self._returned[node]]

    def _pictures(self, world: World, books: NodeRecords) -> tuple[NodeRecords, ...]:
        """Returns the real books and, where a kubelet has forgotten units, the books as if it had not."""
        known = with_forgotten(books, world.nodes[books.node].kubelet)
        return (books,) if known is books else (books, known)

    def _standing(self, node: str, seen: Iterable[Difference] | None = None) -> list[Difference]:
        """Returns differences that were not corrected in time; ``seen``: None where nothing has changed."""
        before = self._suspects.get(node, {})
        if seen is not None:
            self._suspects[node] = before = {
                difference: before.get(difference, seconds()) for difference in seen
            }
        return [difference for difference, since in before.items() if seconds() - since >= TAKEN_BACK_WITHIN]

    def _refuse(self, found: Sequence[Difference], when: str) -> None:
        if found:
            texts = "\n  ".join(str(difference) for difference in found)
            message = f"after {self.outcome.steps} steps, {when}:\n  {texts}"
            raise DifferentError(message, frozenset(difference.kind for difference in found))

    async def _quiet(self, world: World) -> None:
        """Faults end; from the moment at which no pod is on its way all books agree within 5 s."""
        await world.heal()
        if self._had_faults:
            self._had_faults = False
            await asyncio.sleep(SERVE_WITHIN)
        since = last = await self._until_quiet(world)
        while seconds() - since < AGREE_WITHIN:
            if world.server.pods_changed > since:  # a pod that waited has found room
                since = last = await self._until_quiet(world)
            if self._disagreements(world):
                last = seconds()
            await asyncio.sleep(LOOKS)
        if world.server.pods_changed > since:
            await self._quiet(world)
            return
        self._refuse(self._disagreements(world), f"after {AGREE_WITHIN} s of quiet")
        self._returned.clear()
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
        found = [
            difference
            for name, engine in world.engines.items()
            for node in world.books(engine).nodes.values()
            for difference in self._differences(world, name, node)
        ]
        return sorted({str(difference): difference for difference in found}.values())

    def _differences(self, world: World, extender: str, books: NodeRecords) -> list[Difference]:
        forgotten = forgotten_by(world.nodes[books.node].kubelet)
        plain, *known = (
            self._audit_once((extender, books.node, place), picture)
            for place, picture in enumerate(self._pictures(world, books))
        )
        found = [
            difference
            for difference in unexpected(plain, forgotten)
            if not counts_lent_units(difference, books)
        ]
        for difference in known:
            found += unsaid(plain, forgotten, books.node)
            found += (
                other
                for other in still_different(difference, forgotten, books)
                if not counts_lent_units(other, books)
            )
        return found

    def _audit_once(self, place: tuple[str, str, int], picture: NodeRecords) -> list[Difference]:
        known = self._audited.get(place)
        if known is None or known[0] != picture:
            known = self._audited[place] = (picture, node_differences(picture))
        return known[1]


def counts_lent_units(found: Difference, books: NodeRecords) -> bool:
    """Whether an extender counts too many units on the card of a static pod without mirror: no book says
    which of its containers lend their units to others."""
    card = books.share_node.card(found.card) if books.share_node else None
    is_of_extender = found.kind is DifferenceKind.OVER_COUNTED and "by the extender" in found.sentence
    return is_of_extender and any(holder.orphaned for holder in (card.holders if card else ()))


def run(mode: str, seed: int, steps: Sequence[Step], *, go_engines: GoEngines | None = None) -> Outcome:
    """Returns what was seen. Raises whatever ends the run."""
    logging.disable(logging.CRITICAL)
    random.seed(seed)
    try:
        return run_in_virtual_time(Run(mode, seed, steps, go_engines).run())
    finally:
        logging.disable(logging.NOTSET)


def failure(
    mode: str, seed: int, steps: Sequence[Step], *, go_engines: GoEngines | None = None
) -> Exception | None:
    try:
        run(mode, seed, steps, go_engines=go_engines)
    except Exception as error:  # whatever goes wrong is to be told with the steps that lead there
        return error
    return None


def fewest(
    mode: str, seed: int, steps: Sequence[Step], *, tries: int = 400, go_engines: GoEngines | None = None
) -> Sequence[Step]:
    """Returns steps of which hardly one can be left out; fails in the same way."""
    first = failure(mode, seed, steps, go_engines=go_engines)
    size = max(1, len(steps) // 2)
    while size and tries > 0:
        at = 0
        while at < len(steps) and tries > 0:
            shorter = [*steps[:at], *steps[at + size :]]
            tries -= 1
            if _is_alike(failure(mode, seed, shorter, go_engines=go_engines), first):
                steps = shorter
            else:
                at += size
        size //= 2
    return steps


def _is_alike(one: Exception | None, other: Exception | None) -> bool:
    """Whether both are of the same kind, and of the same differences as far as they name any."""
    if isinstance(one, DifferentError) and isinstance(other, DifferentError):
        return other.kinds <= one.kinds or one.kinds <= other.kinds
    return type(one) is type(other)
