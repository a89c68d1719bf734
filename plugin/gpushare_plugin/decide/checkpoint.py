"""What the kubelet stored of each container: its units, and what the plugin answered for them.

Unlike PodResources it names pods by UID, shows ordinary init containers, and outlives every object of ours.
It may show pods that have ended since it was written.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """A card that a container was told, and its units there."""

    uuid: str
    numbers: "array[int]"
    index: int | None = None
    memory: int = 0
    """MiB of the card that the container was given; 0 when unknown."""
    card_memory: int = 0
    """MiB of the whole card; 0 when unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """One container's units of a resource of ours."""

    uid: str
    """Of the pod, as the kubelet knows it."""
    container: str
    numbers: "array[int]"
    """Ascending."""
    resource: ResourceClass = ResourceClass.MEMORY
    cards: tuple[StoredCard, ...] = ()
    """In the order of their units; empty where the stored answer names none."""

    def shares(self, numbers: "array[int]") -> dict[str, int]:
        """Returns card UUID -> how many of ``numbers`` lie on it, by what the container was told."""
        if len(self.cards) == 1:
            return {self.cards[0].uuid: len(numbers)}
        return {each.uuid: sum(number in each.numbers for number in numbers) for each in self.cards}


StoredContainers = Mapping[str, CheckpointEntry]
"""One pod's entries by container."""


@dataclass(frozen=True, slots=True)
class StoredUnits:
    """What the kubelet keeps of one container, before the plugin's answer is looked at."""

    uid: str
    container: str
    resource: ResourceClass
    numbers: "array[int]"
    """Ascending."""


def read_variables(units: StoredUnits, variables: Mapping[str, str], dialect: Dialect) -> CheckpointEntry:
    """Returns an entry by the environment ``variables`` that the plugin answered."""
    names = next((variables[name] for name in dialect.card_variables if name in variables), "")
    uuids = names.split(",") if names else []
    each = len(units.numbers) // len(uuids) if uuids else 0
    is_even = each * len(uuids) == len(units.numbers) and each > 0
    return CheckpointEntry(
        uid=units.uid,
        container=units.container,
        resource=units.resource,
        numbers=units.numbers,
        cards=tuple(
            StoredCard(
                uuid=uuid,
                numbers=units.numbers[place * each : (place + 1) * each],
                index=_number(variables.get(dialect.index_variable), place),
                memory=_number(variables.get(dialect.memory_variable), place) or 0,
                card_memory=_number(variables.get(dialect.card_memory_variable), place) or 0,
            )
            for place, uuid in enumerate(uuids if is_even else ())
        ),
    )


def by_pod(entries: Iterable[CheckpointEntry]) -> dict[str, dict[str, CheckpointEntry]]:
    """Returns pod UID -> container -> entry."""
    pods: dict[str, dict[str, CheckpointEntry]] = {}
    for entry in entries:
        pods.setdefault(entry.uid, {})[entry.container] = entry
    return pods


def _number(text: str | None, place: int) -> int | None:
    """Returns the number at ``place`` of a list."""
    numbers = (text or "").split(",")
    return int(numbers[place]) if place < len(numbers) and numbers[place].isdecimal() else None
