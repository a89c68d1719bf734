"""What a source of devices tells of the memory that is in use, and what it is asked for that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import PhysicalCard


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    """What one process has of one card."""

    card: str
    """UUID."""
    used: int
    """Bytes."""
    cgroup: str
    """``/proc/PID/cgroup`` as it was read; empty where the process was gone by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerUse:
    """What one container has of one card, where a source knows containers by name."""

    uid: str
    """Of the pod."""
    container: str
    card: str
    """UUID."""
    used: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is in use, at one moment."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """UUID -> bytes. A card of which it cannot be told is left out."""
    processes: Sequence[ProcessUse] = ()
    containers: Sequence[ContainerUse] = ()
    problem: Problem | None = None
    """Why nothing can be told now, or nothing of containers, and what to do."""
    remarks: Sequence[str] = ()
    """What is to be told in the log, once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A pod of which a load may be simulated."""

    pod: str
    """Namespace and name, for people."""
    uid: str
    containers: Mapping[str, Sequence[str]]
    """Name -> UUIDs of the cards of which it has units."""
    text: str
    """What its annotation says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseQuestion:
    """What a source is asked."""

    cards: Sequence[PhysicalCard]
    by_container: bool
    """Whether processes are asked for, too."""
    interval: float
    """Seconds that an answer may be old: asking costs."""
    loads: Sequence[Load] = ()


class UseSource(Protocol):
    """Where a node's plugin learns what is in use: it is asked in every round of the reconciler."""

    async def measure(self, question: UseQuestion) -> Use:
        """Returns what is known now, within seconds. What goes wrong is in the answer, never raised."""
