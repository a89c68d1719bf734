"""What people are shown of one card, and of who holds it.

The garbage collector tracks none of it: a cluster has tens of thousands.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct, field


def earliest(times: Iterable[str]) -> str:
    """Returns the first of times of the API, without those that are empty."""
    return min(filter(None, times), default="")


class HolderState(StrEnum):
    STARTED = "Started"
    """The kubelet has given it its units."""
    NOT_STARTED = "NotStarted"
    """It is bound, and its kubelet has given it nothing yet."""
    ORPHANED = "Orphaned"
    """The API server does not have the pod, and the kubelet still keeps its units."""


class ContainerHolding(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What one container has of a card, by the kubelet."""

    container: str
    units: int
    asked_bytes: int
    """What its units are worth."""
    used_bytes: int | None = None
    """None: not known."""
    isolation: str = ""
    """What it was given to keep it to its units: Hook or Driver; empty: nothing."""
    limit_bytes: int | None = None
    """To which that holds it on this card. None: nothing does."""
    lacks_isolation: bool = False
    """Whether its node asks for isolation, and its pod came before that."""
    exceeded_since: str = ""
    """RFC 3339; empty: it has not more than it asked for, or that is not known."""
    evicted_from: str = ""
    """RFC 3339: when its pod is evicted if it still has more then. Empty: it is not."""

    @property
    def exceeds(self) -> bool:
        return bool(self.exceeded_since) or (
            self.used_bytes is not None and self.used_bytes > self.asked_bytes
        )


class CardHolder(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A pod that has units of a card."""

    namespace: str
    name: str
    uid: str
    state: HolderState
    units: int
    asked_bytes: int
    used_bytes: int | None = None
    """None: not known."""
    containers: Sequence[ContainerHolding] = ()
    """Empty before the plugin has reported what the kubelet has given it."""

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def exceeds(self) -> bool:
        return any(container.exceeds for container in self.containers)

    @property
    def exceeded_since(self) -> str:
        """RFC 3339, of the first of its containers; empty: that is not known of any."""
        return earliest(container.exceeded_since for container in self.containers)

    @property
    def evicted_from(self) -> str:
        return earliest(container.evicted_from for container in self.containers)

    @property
    def isolation(self) -> Sequence[str]:
        """What its containers were given to keep them to their units."""
        return sorted({container.isolation for container in self.containers if container.isolation})

    @property
    def lacks_isolation(self) -> bool:
        return any(container.lacks_isolation for container in self.containers)


class ShownFault(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Why a card is sick."""

    reason: str
    message: str = ""
    since: str = ""
    last_seen: str = ""


class SharedCard(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Units are those of the class that the card serves: of an open card in mode Mixed, of memory."""

    index: int
    uuid: str
    model: str = ""
    memory_bytes: int = 0
    """Of the whole card; 0: not known."""
    used_bytes: int | None = None
    """By whomever. None: not known."""
    resource: str = ""
    """Name of the extended resource that pods ask of it."""
    unit: str = ""
    units: int = 0
    held_units: int = 0
    """As the extender counts them: by annotation or by the kubelet, whichever is more for each pod."""
    free_units: int = 0
    """What a new pod can get: nothing of a card, or of a node, that takes none."""
    not_started_units: int = 0
    """Of those that are held: of pods that are bound, and that the kubelet has given nothing yet."""
    held_bytes: int = 0
    free_bytes: int = 0
    takes_pods: bool = True
    """Whether new pods may come to it: it is healthy and not cordoned, and so is its node."""
    healthy: bool = True
    health_reason: str = ""
    fault: ShownFault | None = None
    cordoned: bool = False
    cordon_reason: str = ""
    """As people wrote it."""
    serves: str = ""
    """In mode Mixed: the mode that it serves alone now; empty while it is open to all."""
    offers: dict[str, int] = field(default_factory=dict)
    """In mode Mixed: units of memory, slices and whole cards that it has when it is free."""
    holders: Sequence[CardHolder] = ()

    @property
    def unnamed_units(self) -> int:
        """Units that are held and of which nobody says by whom."""
        return max(0, self.held_units - sum(holder.units for holder in self.holders))

    @property
    def has_problem(self) -> bool:
        is_over = self.held_units > self.units
        is_bad = not self.healthy or self.cordoned or is_over or bool(self.unnamed_units)
        return is_bad or any(
            holder.state is HolderState.ORPHANED or holder.exceeds for holder in self.holders
        )
