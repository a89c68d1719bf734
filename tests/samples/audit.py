"""A node whose books agree, made from what pods have: every book is written from the same list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    LedgerCard,
    LedgerRecord,
    LedgerShare,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    ShareNodeRecord,
    StatusCard,
    StatusHolder,
    StoredContainer,
)
from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.grants import CardPlace
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.placement.units import NodeUnit, parse_node_unit

GIB = 2**30
NODE = "gpu-1"
UNITS = {
    "Memory": "1Gi",
    "Slices": "1/4 card",
    "Exclusive": "1 card",
    "Mixed": "1Gi, 1/4 card, 1 card",
}


@dataclass(frozen=True, slots=True)
class Have:
    """What one pod has: of every container the cards, by number, with the first of its units there and their
    count."""

    name: str
    resource: ResourceClass
    containers: Mapping[str, Mapping[int, tuple[int, int]]]
    inits: frozenset[str] = frozenset()
    """Ordinary init containers: their units are lent to the others."""

    @property
    def key(self) -> PodKey:
        return PodKey("default", self.name, f"uid-{self.name}")

    def units(self, container: str) -> int:
        return sum(count for _, count in self.containers[container].values())

    def held(self) -> dict[int, int]:
        """Card -> distinct units of it."""
        cards: dict[int, set[int]] = {}
        for places in self.containers.values():
            for card, (first, count) in places.items():
                cards.setdefault(card, set()).update(range(first, first + count))
        return {card: len(units) for card, units in cards.items()}


@dataclass(frozen=True, slots=True)
class World:
    mode: str
    memories: Sequence[int]
    """GiB of each card."""
    pods: Sequence[Have]
    dialect: str = GPUSHARE.name
    unit: NodeUnit = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit", parse_node_unit(UNITS[self.mode]))

    def records(self) -> NodeRecords:
        return NodeRecords(
            node=NODE,
            share_node=self._share_node(),
            pods={pod.key.uid: self._pod(pod) for pod in self.pods},
            resources=[entry for pod in self.pods for entry in self._listed(pod)],
            checkpoint=dict(entry for pod in self.pods for entry in self._stored(pod)),
            environments=dict(environment for pod in self.pods for environment in self._environments(pod)),
            ledger=self._ledger(),
            hardware={f"GPU-{card}": memory * GIB for card, memory in enumerate(self.memories)},
        )

    def first_unit(self, card: int) -> int:
        return sum(self.unit.units_in(memory * GIB) for memory in self.memories[:card])

    def numbers(self, pod: Have, container: str) -> list[int]:
        found: list[int] = []
        for card, (first, count) in pod.containers[container].items():
            start = self.first_unit(card) + self._block(card, pod.resource)
            found += range(start + first, start + first + count)
        return sorted(found)

    def _block(self, card: int, resource: ResourceClass) -> int:
        start = 0
        for part in self.unit.parts:
            if part.resource is resource:
                return start
            start += part.units_in(self.memories[card] * GIB)
        raise AssertionError(resource)

    def _part(self, resource: ResourceClass) -> str:
        return next(part.text for part in self.unit.parts if part.resource is resource)

    def _size(self, card: int, resource: ResourceClass | None) -> int:
        wanted = resource or self.unit.parts[0].resource
        part = next(part for part in self.unit.parts if part.resource is wanted)
        return part.units_in(self.memories[card] * GIB)

    def _lock(self, card: int) -> ResourceClass | None:
        if self.mode != "Mixed":
            return None
        return next((pod.resource for pod in self.pods if card in pod.held()), None)

    def _share_node(self) -> ShareNodeRecord:
        cards = tuple(map(self._status_card, range(len(self.memories))))
        return ShareNodeRecord(
            name=NODE,
            unit=self.unit,
            dialect=self.dialect,
            cards=cards,
            units_total=sum(card.units for card in cards),
            units_allocated=sum(card.allocated for card in cards),
        )

    def _status_card(self, card: int) -> StatusCard:
        memory = self.memories[card] * GIB
        return StatusCard(
            uuid=f"GPU-{card}",
            index=card,
            memory=memory,
            units=self._size(card, self._lock(card)),
            allocated=sum(pod.held().get(card, 0) for pod in self.pods),
            first_unit=self.first_unit(card),
            lock=self._lock(card),
            offers={part.resource: part.units_in(memory) for part in self.unit.parts}
            if self.mode == "Mixed"
            else {},
            holders=tuple(
                StatusHolder(key=ContainerKey(pod.key, name), units=places[card][1])
                for pod in self.pods
                for name, places in pod.containers.items()
                if card in places
            ),
        )

    def _pod(self, pod: Have) -> PodRecord:
        name = GPUSHARE.resource_name(pod.resource)
        amounts = {container: pod.units(container) for container in pod.containers}
        total = sum(pod.held().values())
        return PodRecord(
            key=pod.key,
            node=NODE,
            kubelet_uid=pod.key.uid,
            phase="Running",
            request=PodRequest(
                (ResourceRequest(name, pod.resource, total, amounts),), init_containers=pod.inits
            ),
            annotations=self._annotations(pod),
        )

    def _annotations(self, pod: Have) -> dict[str, str]:
        allocation = Allocation(
            node=NODE,
            uid=pod.key.uid,
            at="2026-11-21T10:00:00Z",
            unit=self._part(pod.resource),
            resource=pod.resource,
            containers={
                name: {f"GPU-{card}": count for card, (_, count) in places.items()}
                for name, places in pod.containers.items()
            },
            cards={f"GPU-{card}": units for card, units in pod.held().items()},
        )
        places = {f"GPU-{card}": CardPlace(card, self._size(card, pod.resource)) for card in pod.held()}
        words = DIALECTS[self.dialect].codec.bind_annotations(allocation, places, 1)
        return {GPUSHARE.allocation_annotation: encode_allocation(allocation), **words}

    def _held(self, pod: Have, container: str) -> HeldUnits:
        return HeldUnits(resource=GPUSHARE.resource_name(pod.resource), numbers=self.numbers(pod, container))

    def _listed(self, pod: Have) -> list[ListedContainer]:
        key = PodKey(pod.key.namespace, pod.key.name)
        return [
            ListedContainer(key=ContainerKey(key, name), units=(self._held(pod, name),))
            for name in pod.containers
            if name not in pod.inits
        ]

    def _stored(self, pod: Have) -> list[tuple[ContainerKey, StoredContainer]]:
        key = PodKey("", "", pod.key.uid)
        return [
            (
                ContainerKey(key, name),
                StoredContainer(units=(self._held(pod, name),), response=self.seen(pod, name)),
            )
            for name in pod.containers
        ]

    def seen(self, pod: Have, container: str) -> SeenCards:
        cards = tuple(f"GPU-{card}" for card in sorted(pod.containers[container]))
        return SeenCards(
            cards=cards,
            units=pod.units(container),
            unit=self._part(pod.resource),
            others={"NVIDIA_VISIBLE_DEVICES": ",".join(cards)},
        )

    def _environments(self, pod: Have) -> list[tuple[ContainerKey, SeenCards | None]]:
        return [
            (ContainerKey(pod.key, name), self.seen(pod, name))
            for name in pod.containers
            if name not in pod.inits
        ]

    def _ledger(self) -> LedgerRecord:
        return LedgerRecord(
            unit=self.unit, cards=tuple(self._ledger_card(card) for card in range(len(self.memories)))
        )

    def _ledger_card(self, card: int) -> LedgerCard:
        shares = tuple(
            LedgerShare(pod=pod.key, units=pod.held()[card]) for pod in self.pods if card in pod.held()
        )
        return LedgerCard(
            uuid=f"GPU-{card}",
            units=self._size(card, self._lock(card)),
            allocated=sum(share.units for share in shares),
            lock=self._lock(card),
            shares=shares,
        )


def memory_pod(name: str, card: int, first: int, units: int) -> Have:
    return Have(name, ResourceClass.MEMORY, {"main": {card: (first, units)}})


def slice_pod(name: str, *cards: int, first: int = 0) -> Have:
    return Have(name, ResourceClass.SLICE, {"main": dict.fromkeys(cards, (first, 1))})


def card_pod(name: str, *cards: int) -> Have:
    return Have(name, ResourceClass.CARD, {"main": dict.fromkeys(cards, (0, 1))})


def lending_pod(name: str, card: int, first: int, *, init: int, main: int) -> Have:
    """Its init container lends the others its units."""
    containers = {"init": {card: (first, init)}, "main": {card: (first, main)}}
    return Have(name, ResourceClass.MEMORY, containers, frozenset({"init"}))


MEMORY_WORLD = World(
    "Memory",
    (16, 8),
    (memory_pod("a", 0, 0, 4), memory_pod("b", 0, 4, 4), lending_pod("c", 1, 0, init=5, main=3)),
    dialect=ALIYUN.name,
)
MIXED_WORLD = World(
    "Mixed", (16, 8, 8, 8), (memory_pod("a", 0, 0, 4), slice_pod("b", 1, 2), card_pod("c", 3))
)
