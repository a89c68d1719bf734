"""Disks of nodes are full for a while: small ones of their own, which nothing else lies on."""

from collections.abc import Callable
from random import Random

from chaos.operation import Fault, Kind, Operation
from chaos.plan.known import CONTROL_PLANES, WORKERS, Known
from chaos.world import CONFIGURATION_DISK, LOG_DISK, World

LASTS = (2.0, 8.0)
"""Seconds."""


class _Full(Fault, frozen=True, kw_only=True):
    node: str
    disk: str

    @property
    def touches(self) -> frozenset[str]:
        """Manifests are not edited meanwhile either: chaos itself could not write them."""
        return frozenset({f"disk/{self.node}", f"node/{self.node}", "manifests"})

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.fill_disk, self.node, self.disk)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.empty_disk, self.node, self.disk)


class FullLogDisk(_Full, frozen=True, kw_only=True, tag="disk.log"):
    """Of the plugin's log."""

    disk: str = LOG_DISK


class FullConfigurationDisk(_Full, frozen=True, kw_only=True, tag="disk.configuration"):
    """Of a control plane's manifests and of what hostctl keeps."""

    disk: str = CONFIGURATION_DISK


Draw = Callable[[Random, Known], Operation]


def draw_full(operation: type[_Full], nodes: tuple[str, ...], disk: str) -> Draw:
    return lambda random, _: operation(
        node=random.choice(nodes), disk=disk, seconds=round(random.uniform(*LASTS), 1)
    )


KINDS = (
    Kind(operation=FullLogDisk, weight=0.5, draw=draw_full(FullLogDisk, WORKERS, LOG_DISK)),
    Kind(
        operation=FullConfigurationDisk,
        weight=0.5,
        draw=draw_full(FullConfigurationDisk, CONTROL_PLANES, CONFIGURATION_DISK),
    ),
)
