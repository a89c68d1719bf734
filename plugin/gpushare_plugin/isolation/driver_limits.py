"""What the driver is asked about limits of containers' memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.isolation.kind import NO_DRIVER, IsolatedShare
from gpushare_plugin.decide.use.container_use import ContainerShare


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitReading:
    limits: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that the driver holds a container to on a card. A share that is missing is not known."""
    problem: Problem | None = None
    """Why nothing could be read back, and what to do."""


class DriverLimits(Protocol):
    """Asked in every round of a node whose policy asks for isolation by the driver, or has containers with
    it. Both answer within seconds. What goes wrong is in the answer, and not raised."""

    async def problem(self) -> Problem | None:
        """Returns why the driver, the toolkit or the node's cgroups cannot limit a container's memory."""

    async def read_back(self, shares: Sequence[IsolatedShare]) -> LimitReading:
        """Returns what ``shares``, of containers that were given kind Driver, are held to."""


class NoDriverLimits:
    """Of a plugin that cannot ask a driver."""

    async def problem(self) -> Problem | None:
        return NO_DRIVER.problem

    async def read_back(self, _: Sequence[IsolatedShare]) -> LimitReading:
        return LimitReading(problem=NO_DRIVER.problem)
