"""Memory in use and its limits: what a source of devices is asked, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import PhysicalCard

PROCESSES_UNKNOWN = "ProcessesUnknown"
"""Reason of a problem: which processes use how much is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    card: str
    """UUID."""
    used: int
    """Bytes."""
    cgroup: str
    """The text of ``/proc/PID/cgroup``; empty where the process was gone by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerUse:
    """What one container uses of one card, where a source knows containers by name."""

    uid: str
    """Of the pod."""
    container: str
    card: str
    """UUID."""
    used: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    cards: Mapping[str, int] = field(default_factory=dict)
    """UUID -> bytes. A card whose use is unknown is left out."""
    processes: Sequence[ProcessUse] = ()
    containers: Sequence[ContainerUse] = ()
    problem: Problem | None = None
    """Why nothing is known now, or nothing of containers, and what to do."""
    warnings: Sequence[str] = ()
    """For the log, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A pod whose load is to be simulated."""

    pod: str
    """Namespace and name, for people."""
    uid: str
    containers: Mapping[str, Sequence[str]]
    """Name -> UUIDs of the cards on which it has units."""
    text: str
    """Of the pod's annotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseQuestion:
    cards: Sequence[PhysicalCard]
    by_container: bool
    """Whether the use of processes is asked for, too."""
    interval: float
    """Seconds that an answer may be old, because asking costs."""
    loads: Sequence[Load] = ()


class UseSource(Protocol):
    """Where a node's plugin learns what is in use: asked in every round of the reconciler."""

    async def measure(self, question: UseQuestion) -> Use:
        """Returns within seconds. What goes wrong is in the answer, and not raised."""


class CardCgroup(NamedTuple):
    """One cgroup's part of one card."""

    card: str
    """UUID."""
    cgroup: str
    """Its folder, as the plugin sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupMemory:
    """What the driver counts of a card for the processes of a cgroup."""

    limit: int
    """Bytes; ``NO_LIMIT`` where there is none."""
    used: int | None = None
    """Bytes; None where the driver does not say."""


NO_LIMIT = 2**64 - 1
"""``NVML_DEVICE_MEMORY_LIMIT_MAX``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """What a driver says of limits on the memory of cgroups."""

    version: str = ""
    """Of the driver; empty where that is not known."""
    supported: bool | None = None
    """Whether the driver can limit a cgroup's memory; None where it did not answer."""
    cgroups: Mapping[CardCgroup, CgroupMemory] = field(default_factory=dict)
    """A cgroup that is missing is not known."""
    problem: Problem | None = None
    """Why something is not known."""


class LimitSource(Protocol):
    """Where a node's plugin learns which limits are in force."""

    async def limits(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        """Returns within seconds. What goes wrong is in the answer, and not raised."""
