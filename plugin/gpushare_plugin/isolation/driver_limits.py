"""What the driver is asked about limits of containers' memory."""

from collections.abc import Sequence
from typing import Protocol

from gpushare_plugin.decide.isolation.kind import NO_DRIVER, DriverFacts, IsolatedShare


class DriverLimits(Protocol):
    """Asked in every round of a node whose policy asks for isolation by the driver, or that has containers
    with it."""

    async def facts(self, shares: Sequence[IsolatedShare]) -> DriverFacts:
        """Returns whether the driver can limit memory, and what it says of ``shares``, whose containers were
        given kind Driver. Returns within seconds. What goes wrong is in the answer, and not raised."""


class NoDriverLimits:
    """Of a plugin that cannot ask a driver."""

    async def facts(self, _: Sequence[IsolatedShare]) -> DriverFacts:
        return NO_DRIVER
