"""What the kubelet stored of each container: its units, and what the plugin answered for them.

Unlike PodResources it names pods by UID, has ordinary init containers, and outlives every object of ours. It
may have pods that have ended since it was written.
"""

import re
from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from gpushare_core.api.bounds import is_card_uuid
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.dialects.dialect import CARD_VARIABLE, Dialect
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.whole_number import is_number
from gpushare_plugin.decide.units.foreign_units import ForeignUnits, dialect_of

ISOLATION_VARIABLE = "GPUSHARE_ISOLATION"
"""In the environment of a container: which kind of isolation it was given."""
LIMIT_VARIABLE = "NVIDIA_GPU_MEMORY_LIMIT"
"""With kind Driver: MiB of each card."""
LIMITS_PATH = "/etc/gpushare/limits"
"""With kind Hook: where a container has its file of limits. On the node the file is named by the container's
identity."""
_IDENTITY = re.compile("[0-9a-f]{32}")
_KINDS = {kind.value: kind for kind in MemoryIsolation if kind is not MemoryIsolation.NONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenIsolation:
    """What a container was given to keep it to the memory of its units."""

    kind: MemoryIsolation
    identity: str = ""
    """With kind Hook: the name of its file of limits; empty when unknown."""
    memory: int = 0
    """With kind Driver: bytes of each card; 0 when unknown."""


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
    """Ascending, each once."""
    resource: ResourceClass = ResourceClass.MEMORY
    cards: tuple[StoredCard, ...] = ()
    """In the order of their units; empty where the stored answer names none."""
    name: str = ""
    """Of the extended resource."""
    foreign: tuple[ForeignUnits, ...] = ()
    unit: str = ""
    """What the container was told that one unit is; empty when unknown."""
    isolation: GivenIsolation | None = None

    def shares(self, numbers: "array[int]") -> dict[str, int]:
        """Returns card UUID -> how many of ``numbers`` lie on it, by what the container was told."""
        if len(self.cards) == 1:
            return {self.cards[0].uuid: len(numbers)}
        return {card.uuid: sum(number in card.numbers for number in numbers) for card in self.cards}


StoredContainers = Mapping[str, CheckpointEntry]
"""One pod's entries by container."""


@dataclass(frozen=True, slots=True)
class StoredUnits:
    """What the kubelet keeps of one container, before the plugin's answer is looked at."""

    uid: str
    container: str
    name: str
    """Of the extended resource."""
    numbers: "array[int]"
    """Ascending, each once."""
    foreign: tuple[ForeignUnits, ...] = ()


def read_answer(
    units: StoredUnits,
    variables: Mapping[str, str],
    device_nodes: Collection[str] = (),
    mounts: Mapping[str, str] = MappingProxyType({}),
) -> CheckpointEntry:
    """Returns the entry of ``units`` by the environment, the device nodes (paths) and the mounts (path in the
    container -> path on the node) that a plugin answered.

    Ours names the cards by UUID in every dialect; another plugin's answer names the card in its own way.
    """
    names = variables.get(CARD_VARIABLE, "")
    uuids = names.split(",") if names and units.numbers else []
    uuids = uuids if all(map(is_card_uuid, uuids)) else []
    share = len(units.numbers) // len(uuids) if uuids else 0
    is_even = share * len(uuids) == len(units.numbers) and share > 0
    return CheckpointEntry(
        uid=units.uid,
        container=units.container,
        resource=RESOURCES[units.name],
        name=units.name,
        foreign=tuple(_with_card(unit, variables, device_nodes) for unit in units.foreign),
        numbers=units.numbers,
        cards=tuple(
            StoredCard(
                uuid=uuid,
                # A single card shares them: of 256,000 units each copy is a megabyte.
                numbers=units.numbers[place * share : (place + 1) * share]
                if len(uuids) > 1
                else units.numbers,
                index=_number(variables.get(Dialect.index_variable), place),
                memory=_number(variables.get(Dialect.memory_variable), place) or 0,
                card_memory=_number(variables.get(Dialect.card_memory_variable), place) or 0,
            )
            for place, uuid in enumerate(uuids if is_even else ())
        ),
        unit=variables.get(Dialect.unit_variable, ""),
        isolation=_isolation(variables, mounts),
    )


def _isolation(variables: Mapping[str, str], mounts: Mapping[str, str]) -> GivenIsolation | None:
    """Returns None also for a kind that this version does not know."""
    kind = _KINDS.get(variables.get(ISOLATION_VARIABLE, ""))
    if kind is None:
        return None
    name = mounts.get(LIMITS_PATH, "").rpartition("/")[2]
    return GivenIsolation(
        kind=kind,
        identity=name if _IDENTITY.fullmatch(name) else "",
        memory=(_number(variables.get(LIMIT_VARIABLE), 0) or 0) * MIB,
    )


def _with_card(
    units: ForeignUnits, variables: Mapping[str, str], device_nodes: Collection[str]
) -> ForeignUnits:
    codec = dialect_of(units.name).codec
    card = codec.stored_card(variables, device_nodes)
    return replace(
        units,
        card=units.card if units.card or card is None else str(card),
        size=codec.unit_size(variables, units.count),
    )


def by_pod(entries: Iterable[CheckpointEntry]) -> dict[str, dict[str, CheckpointEntry]]:
    """Returns pod UID -> container -> entry. The checkpoint has an entry for each extended resource of a
    container, such as another plugin's device beside units of ours, in no order."""
    pods: dict[str, dict[str, CheckpointEntry]] = {}
    for entry in entries:
        containers = pods.setdefault(entry.uid, {})
        other = containers.get(entry.container)
        containers[entry.container] = _joined(other, entry) if other else entry
    return pods


def _joined(one: CheckpointEntry, other: CheckpointEntry) -> CheckpointEntry:
    own = other if other.numbers or not one.numbers else one
    return replace(own, foreign=(*one.foreign, *other.foreign))


def _number(text: str | None, place: int) -> int | None:
    numbers = (text or "").split(",")
    return int(numbers[place]) if place < len(numbers) and is_number(numbers[place]) else None
