"""hostctl ends in the middle of its work on a host: its Job is deleted, or the kernel kills it."""

import asyncio
import signal
from random import Random

from chaos.operation import Kind, NothingHitError, Operation
from chaos.operations.manifests import _Manifest
from chaos.operations.programs import ENDINGS, running
from chaos.plan.known import CONTROL_PLANES, Known
from chaos.world import World
from gpushare_localcluster.containers import ContainerRecord

HOSTCTL = "hostctl"
PATIENCE = 30.0
"""Seconds until a lost edit has led to a run of hostctl; without a policy there is no run."""
INTERVAL = 0.1
IN = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds of a run, which takes some ten: keys, configuration, manifest, the wait for kube-scheduler."""


class EndHostctl(_Manifest, frozen=True, kw_only=True, tag="hostctl.end"):
    """An upgrade has written the manifest anew; the run that repairs it is ended half-way."""

    after: float
    """Seconds that it may work."""
    sent: str
    """Name of the signal."""

    async def run(self, world: World) -> None:
        self.move_in(world, self.without_us(world))
        if (found := await self._await_run(world)) is None:
            raise NothingHitError("hostctl did not run")
        await asyncio.sleep(self.after)
        await world.thread(
            world.cluster.kill_container,
            namespace=found.namespace,
            pod=found.pod,
            container=found.container,
            signal=signal.Signals[self.sent],
        )

    async def _await_run(self, world: World) -> ContainerRecord | None:
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            if here := [
                container for container in await running(world, HOSTCTL) if container.node == self.node
            ]:
                return here[0]
            await asyncio.sleep(INTERVAL)
        return None


def draw_end(random: Random, _: Known) -> Operation:
    return EndHostctl(
        node=random.choice(CONTROL_PLANES), after=random.choice(IN), sent=random.choice(ENDINGS)
    )


KINDS = (Kind(operation=EndHostctl, weight=0.5, draw=draw_end, at_most=15),)
