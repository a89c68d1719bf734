"""What a kind of isolation is: whether a node can have it, what a container gets, whether it is in force."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.served import Problem
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.devices.card import HostMount

ISOLATION_VARIABLE = "GPUSHARE_ISOLATION"
"""In the environment of a container: what it was given. The kubelet keeps it in its checkpoint, which is how
the plugin knows it later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimit:
    """How much of a card a container may have."""

    uuid: str
    memory: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedMemory:
    """What a container is to be held to."""

    identity: str
    """The same for the same units of the same sizes, and of no other container that runs on the node."""
    limits: tuple[CardLimit, ...]
    """By card, in the order of their indices."""
    context_memory: int
    """Bytes that the first use of a card by a process counts."""


def identity_of(ids: Sequence[str], limits: Sequence[CardLimit]) -> str:
    """Returns 32 hexadecimal digits that follow from the unit IDs and the limits alone.

    Units belong to one container while they are held: Allocate may be repeated, and gives the same.
    """
    content = [*sorted(ids), *(f"{limit.uuid}={limit.memory}" for limit in limits)]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationEquipment:
    """What a container gets with its cards."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[HostMount, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path on the node -> content: each is there before the kubelet is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationFacts:
    """What is known of the node, by what effects have looked at."""

    hook_problem: Problem | None = None
    """Why the hook's library cannot be given to containers."""
    driver_problem: Problem | None = None
    """Why the driver, the toolkit or the node's cgroups cannot limit a container's memory."""
    read_back: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that the driver holds a container to, by what it says itself. A share that is missing is not
    known."""
    read_problem: Problem | None = None
    """Why nothing could be read back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationKind:
    """A row of the table."""

    name: MemoryIsolation
    unable: Callable[[IsolationFacts], Problem | None]
    """Returns why a node cannot have it, with what to do."""
    equipment: Callable[[GrantedMemory], IsolationEquipment]
    in_force: Callable[[ContainerShare, int, IsolationFacts], bool | Problem]
    """Gets a share of a container that was given this kind, and the bytes that it is to be held to. Returns
    whether it is, or why that is not known."""
