"""How much memory our processes have through a run."""

import asyncio
from collections import defaultdict

from bench.readings.footprint import measure

from chaos.world import World
from gpushare_localcluster.errors import LocalClusterError

INTERVAL = 15.0
"""Seconds between two looks."""


class Footprint:
    """Filled by ``watch``."""

    def __init__(self) -> None:
        self.memory: dict[str, list[float]] = defaultdict(list)
        """``program on node`` -> resident MiB, in order of time; a process that was restarted begins anew."""

    async def watch(self, world: World) -> None:
        """Looks for ever, until cancelled."""
        while True:
            try:
                for footprint in await world.thread(measure, world.cluster):
                    self.memory[f"{footprint.container} on {footprint.node}"].append(footprint.resident)
            except (LocalClusterError, KeyError, ValueError, OSError):
                pass  # a process ended between the list and the look at it
            await asyncio.sleep(INTERVAL)
