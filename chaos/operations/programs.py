"""Programs in containers end or pause while they work: ours, and kube-scheduler.

While a plugin is paused its status and metrics stay as they were, and pods that come to its node wait. While
the extender that is asked is paused, pods that ask for cards wait. Nothing else may differ meanwhile.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

from chaos.operation import Fault, Kind, NothingHitError, Operation
from chaos.plan.known import CONTROL_PLANES, Known
from chaos.world import SYSTEM, World
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_localcluster.containers import ContainerRecord
from gpushare_localcluster.errors import LocalClusterError

PLUGIN, EXTENDER, OPERATOR, SCHEDULER = "plugin", "extender", "operator", "kube-scheduler"
"""Names of containers."""
NAMESPACES = (SYSTEM, "kube-system")
ENDINGS = ("SIGKILL", "SIGKILL", "SIGTERM")
ALL = -1
"""As ``which``: every one at once."""
MOST = 6
"""Of one program."""
PAUSE = (2.0, 9.0)
"""Seconds, within every Lease."""
LEASE = {EXTENDER: 20.0, OPERATOR: 30.0, SCHEDULER: 15.0}
"""Seconds that each one's Lease lasts."""


async def running(world: World, program: str) -> list[ContainerRecord]:
    """Returns the containers that run a program, in a fixed order."""
    records = await world.thread(world.cluster.containers)
    found = (record for record in records if record.container == program and record.namespace in NAMESPACES)
    return sorted(
        (container for container in found if container.state == "running"),
        key=lambda container: (container.node, container.pod, container.attempt),
    )


async def chosen(world: World, program: str, which: int) -> list[ContainerRecord]:
    """Returns the container number ``which``, counted round and round, or all; none where none runs."""
    found = await running(world, program)
    return found if which == ALL or not found else [found[which % len(found)]]


async def send(world: World, records: Sequence[ContainerRecord], name: str) -> None:
    """Sends the signal ``name`` to each container, unless it has ended meanwhile. Raises ``NothingHitError``
    where all have."""
    reached = 0
    for record in records:
        try:
            await world.signal(
                namespace=record.namespace,
                pod=record.pod,
                container=record.container,
                signal=signal.Signals[name],
            )
        except LocalClusterError:
            continue
        reached += 1
    if not reached:
        raise NothingHitError("no container of the program runs")


async def wake(world: World, program: str) -> None:
    """Has every container of the program go on."""
    with contextlib.suppress(NothingHitError):
        await send(world, await running(world, program), "SIGCONT")


class _End(Fault, frozen=True, kw_only=True):
    """A program gets a signal that ends it; the kubelet starts it again."""

    program: ClassVar[str] = ""
    which: int
    """See ``chosen``."""
    sent: str
    """Name of the signal."""

    async def run(self, world: World) -> None:
        await send(world, await chosen(world, self.program, self.which), self.sent)


class _Pause(Fault, frozen=True, kw_only=True):
    """A program stands still and goes on afterwards, without knowing of it."""

    program: ClassVar[str] = ""
    which: int

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"pause/{self.program}"})

    async def run(self, world: World) -> None:
        await send(world, await chosen(world, self.program, self.which), "SIGSTOP")

    async def heal(self, world: World) -> None:
        """Wakes every container: the number of the paused one may be another's by now."""
        await wake(world, self.program)


class _DeletePod(Fault, frozen=True, kw_only=True):
    """A program's pod is deleted; its controller makes another one."""

    program: ClassVar[str] = ""
    which: int
    grace: int
    """Seconds; 0: by force."""

    async def run(self, world: World) -> None:
        found = await chosen(world, self.program, self.which)
        if not found:
            raise NothingHitError("no container of the program runs")
        for container in found:
            path, body = pod_path(container.namespace, container.pod), {"gracePeriodSeconds": self.grace}
            await world.client.send(ApiRequest(method="DELETE", path=path, body=body))


class KillPlugin(_End, frozen=True, kw_only=True, tag="plugin.kill"):
    program: ClassVar[str] = PLUGIN


class KillExtender(_End, frozen=True, kw_only=True, tag="extender.kill"):
    program: ClassVar[str] = EXTENDER


class KillOperator(_End, frozen=True, kw_only=True, tag="operator.kill"):
    program: ClassVar[str] = OPERATOR


class KillScheduler(_End, frozen=True, kw_only=True, tag="scheduler.kill"):
    program: ClassVar[str] = SCHEDULER


class PausePlugin(_Pause, frozen=True, kw_only=True, tag="plugin.pause"):
    program: ClassVar[str] = PLUGIN


class PauseExtender(_Pause, frozen=True, kw_only=True, tag="extender.pause"):
    program: ClassVar[str] = EXTENDER


class PauseOperator(_Pause, frozen=True, kw_only=True, tag="operator.pause"):
    program: ClassVar[str] = OPERATOR


class PauseScheduler(_Pause, frozen=True, kw_only=True, tag="scheduler.pause"):
    program: ClassVar[str] = SCHEDULER


class DeletePlugin(_DeletePod, frozen=True, kw_only=True, tag="plugin.delete"):
    program: ClassVar[str] = PLUGIN


class DeleteExtender(_DeletePod, frozen=True, kw_only=True, tag="extender.delete"):
    program: ClassVar[str] = EXTENDER


class DeleteOperator(_DeletePod, frozen=True, kw_only=True, tag="operator.delete"):
    program: ClassVar[str] = OPERATOR


class DeleteScheduler(_DeletePod, frozen=True, kw_only=True, tag="scheduler.delete"):
    program: ClassVar[str] = SCHEDULER


class OversleepScheduler(_Pause, frozen=True, kw_only=True, tag="scheduler.oversleep"):
    """A kube-scheduler with the plugin pauses past its Lease, in the middle of binds. Where it led, another
    one leads meanwhile, and the paused one must not bind any more when it wakes."""

    program: ClassVar[str] = SCHEDULER


class OversleepOperator(_Pause, frozen=True, kw_only=True, tag="operator.oversleep"):
    """Every operator pauses past its Lease: afterwards none may write by what it knew before."""

    program: ClassVar[str] = OPERATOR


class OversleepScheduling(Fault, frozen=True, kw_only=True, tag="scheduling.oversleep"):
    """kube-scheduler and extender of one control plane pause past both Leases, in the middle of binds. The
    next scheduler asks the next extender; the paused ones must not bind any more when they wake."""

    node: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"pause/{EXTENDER}", f"pause/{SCHEDULER}"})

    async def run(self, world: World) -> None:
        for program in (EXTENDER, SCHEDULER):
            here = [container for container in await running(world, program) if container.node == self.node]
            await send(world, here, "SIGSTOP")

    async def heal(self, world: World) -> None:
        """Wakes the extender first, which must not write; the scheduler ends by itself."""
        for program in (EXTENDER, SCHEDULER):
            await wake(world, program)
            await asyncio.sleep(0.2)


Draw = Callable[[Random, Known], Operation]


def draw_end(operation: type[_End]) -> Draw:
    return lambda random, _: operation(which=_which(random), sent=random.choice(ENDINGS))


def draw_pause(operation: type[_Pause]) -> Draw:
    return lambda random, _: operation(which=_which(random), seconds=round(random.uniform(*PAUSE), 1))


def draw_delete(operation: type[_DeletePod]) -> Draw:
    return lambda random, _: operation(which=_which(random), grace=random.choice((0, 5, 30)))


def draw_oversleep_operator(random: Random, _: Known) -> Operation:
    return OversleepOperator(which=ALL, seconds=past(LEASE[OPERATOR], random))


def draw_oversleep_scheduling(random: Random, _: Known) -> Operation:
    seconds = past(max(LEASE[EXTENDER], LEASE[SCHEDULER]), random)
    return OversleepScheduling(node=random.choice(CONTROL_PLANES), seconds=seconds)


def draw_oversleep_scheduler(random: Random, _: Known) -> Operation:
    seconds = past(max(LEASE[EXTENDER], LEASE[SCHEDULER]), random)
    return OversleepScheduler(which=_which(random), seconds=seconds)


def past(lease: float, random: Random) -> float:
    """Returns the seconds after which another process has the Lease, even if it was renewed a moment ago."""
    return round(lease + random.uniform(3, 9), 1)


def _which(random: Random) -> int:
    return ALL if random.random() < 0.2 else random.randrange(MOST)


KINDS = (
    *(
        Kind(operation=operation, weight=3, draw=draw_end(operation))
        for operation in (KillPlugin, KillExtender)
    ),
    *(
        Kind(operation=operation, weight=1.5, draw=draw_end(operation))
        for operation in (KillOperator, KillScheduler)
    ),
    *(
        Kind(operation=operation, weight=2, draw=draw_pause(operation))
        for operation in (PausePlugin, PauseExtender)
    ),
    *(
        Kind(operation=operation, weight=1, draw=draw_pause(operation))
        for operation in (PauseOperator, PauseScheduler)
    ),
    *(
        Kind(operation=operation, weight=1, draw=draw_delete(operation))
        for operation in (DeletePlugin, DeleteExtender, DeleteOperator)
    ),
    Kind(operation=OversleepOperator, weight=0.2, draw=draw_oversleep_operator, at_most=5),
    Kind(operation=OversleepScheduling, weight=0.4, draw=draw_oversleep_scheduling, at_most=15),
)

NEED_EXTENDER: frozenset[type[Operation]] = frozenset(
    {KillExtender, PauseExtender, DeleteExtender, OversleepScheduling}
)
"""Operations on the extender."""
PLUGIN_KINDS = (
    Kind(operation=DeleteScheduler, weight=1, draw=draw_delete(DeleteScheduler)),
    Kind(operation=OversleepScheduler, weight=0.4, draw=draw_oversleep_scheduler, at_most=15),
)
"""In place of these where kube-scheduler has the plugin."""
