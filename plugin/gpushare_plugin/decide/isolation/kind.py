"""What a kind of isolation is: whether a node can have it, what a container gets, whether it is in force."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.served import Problem
from gpushare_plugin.decide.held.checkpoint import GivenIsolation
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.devices.card import HostMount


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimit:
    """How much of a card a container may have."""

    uuid: str
    memory: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedMemory:
    """What a container is to be held to."""

    numbers: Sequence[int]
    """Of its units, ascending. They belong to no other container that runs on the node."""
    limits: tuple[CardLimit, ...]
    """By card, in the order of their indices."""
    context_memory: int
    """Bytes that the first use of a card by a process counts."""
    folder: str
    """Of the node's files for isolation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationEquipment:
    """What a container gets with its cards."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[HostMount, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path on the node -> content: each is there before the kubelet is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedShare:
    """A container's part of one card that it was given isolation with."""

    share: ContainerShare
    given: GivenIsolation
    numbers: "array[int]"
    """Of all units of the container, ascending."""
    memory: int
    """Bytes of its units on the card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationFinding:
    """Whether a share is held to what its container was given."""

    in_force: bool | None
    """None: not known."""
    seen: str = ""
    """Where it is not in force: what was seen instead of what was given, such as "the driver holds it to 8Gi
    and not to 4Gi". Where it is not known: why. Where it is in force: what is worth knowing all the same."""
    limit: int | None = None
    """Bytes that the container was given as its limit on the card; None where that is not known."""
    uncounted: int = 0
    """Bytes that it may have above that, because they are not counted."""
    is_useless: bool = False
    """The limit is in force, and so small that no program can use the card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookFacts:
    """What was seen of the files that the hook needs."""

    problem: Problem | None = None
    """Why the library cannot be given to new containers."""
    missing: tuple[str, ...] = ()
    """Names of files that every container with the hook mounts, and that are not as they have to be."""
    limits: Mapping[str, bytes] = field(default_factory=dict)
    """Identity -> content of the file of limits that is on the node."""
    exceeding: frozenset[ContainerShare] = frozenset()
    """Shares of which the containers are measured to have more than the hook lets pass."""
    read_problem: Problem | None = None
    """Why that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """What was seen of the driver, and what it says itself."""

    problem: Problem | None = None
    """Why the driver, the toolkit or the node's cgroups cannot limit a container's memory."""
    read_back: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that the driver holds a container to. A share that is missing is not known."""
    read_problem: Problem | None = None
    """Why nothing could be read back."""
    not_running: frozenset[ContainerShare] = frozenset()
    """Shares of containers that have no process now: nothing has to be held."""
    used: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that the driver counts for a container. A share that is missing is not known."""


NO_DRIVER = DriverFacts(
    problem=Problem("NotServed", "this version of the plugin cannot ask the driver to limit memory")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationFacts:
    """What is known of the node, by what effects have looked at."""

    hook: HookFacts = field(default_factory=HookFacts)
    driver: DriverFacts = NO_DRIVER


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationKind:
    """A row of the table."""

    name: MemoryIsolation
    unable: Callable[[IsolationFacts], Problem | None]
    """Returns why a node cannot have it, with what to do."""
    equipment: Callable[[GrantedMemory], IsolationEquipment]
    in_force: Callable[[IsolatedShare, IsolationFacts], IsolationFinding]
    """Gets a share of a container that was given this kind."""
    paths: tuple[str, ...] = ()
    """Of its mounts in a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationChoice:
    """What new containers get."""

    kind: IsolationKind
    context_memory: int = 0
    """Bytes."""
    folder: str = ""
