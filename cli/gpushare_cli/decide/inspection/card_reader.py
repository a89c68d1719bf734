"""From a GPUShareNode and the ledger's sums to a card that people are shown. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from gpushare_cli.decide.drain.cordon import cordon_reasons
from gpushare_cli.decide.inspection.isolation import eviction_time
from gpushare_cli.decide.inspection.shared_card import (
    CardHolder,
    ContainerHolding,
    HolderState,
    SharedCard,
    ShownFault,
)
from gpushare_cli.decide.objects.share_node import (
    CardFaultText,
    ObservedCard,
    ObservedShare,
    ObservedShareNode,
)
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Unit, part_of
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.ledger.node_sums import Share
from gpushare_core.scheduling.objects.share_node import ShareNode, node_unit


@lru_cache(maxsize=1024)
def memory_bytes(quantity: str) -> int:
    """Returns 0 for what is no quantity. A cluster has few different ones."""
    try:
        return parse_memory(quantity)
    except ValueError:
        return 0


class ServedClass(NamedTuple):
    """What a card serves: the resource that pods ask for, and its unit; None where the unit is not known."""

    resource: str
    unit: Unit | None
    is_whole: bool
    """Whether a pod gets whole cards."""

    def worth(self, units: int, shared: int) -> int:
        """Returns the bytes of ``units`` of a card that shares so many bytes; 0 where it is not known."""
        return self.unit.memory_of(units, shared) if self.unit else 0


@lru_cache(maxsize=256)
def served_class(dialect: str, unit: str, resource: ResourceClass) -> ServedClass:
    """A cluster has few different ones. ``unit``: of the node."""
    parsed = node_unit(unit)
    name = DIALECTS[dialect].resource_name(resource)
    part = part_of(parsed, resource) if parsed else None
    return ServedClass(name, part, resource is ResourceClass.CARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReader:
    """Reads the cards of one node."""

    node: ObservedShareNode
    ledger: NodeLedger
    share_node: ShareNode
    is_closed: bool = False
    """Whether no new pod comes to the node."""
    starting: Collection[str] = ()
    """UIDs of the pods that do not run yet."""
    knows_cards_use: bool
    knows_containers_use: bool
    faults: Mapping[str, CardFaultText] = field(default_factory=dict)
    """By UUID, of the cards that are sick."""

    def cards(self) -> Iterable[SharedCard]:
        """A cluster has tens of thousands: what is done here for each takes a good part of a command."""
        observed = {card.uuid: card for card in reversed(self.node.cards)}
        for card in self.ledger.cards():
            if card.uuid in observed:
                yield self._card(card, observed[card.uuid])

    def _card(self, card: Card, observed: ObservedCard) -> SharedCard:
        lock = self.ledger.lock_of(card.uuid) or self._class_of(observed)
        served = self._served(lock)
        memory = memory_bytes(observed.memory)
        shared = max(0, memory - memory_bytes(self.node.spec.reserved_memory))
        is_open = card.healthy and not self.is_closed
        free = max(0, card.free) if is_open else 0
        holders = self._holders(observed, served, shared)
        is_healthy, fault = observed.health == "Healthy", self.faults.get(card.uuid)
        return SharedCard(
            index=card.index,
            uuid=card.uuid,
            model=intern(observed.model),  # few different ones, of 40,000 cards
            memory_bytes=memory,
            used_bytes=memory_bytes(observed.used_memory) if self.knows_cards_use else None,
            resource=served.resource,
            unit=served.unit.text if served.unit else self.share_node.unit,
            units=card.units,
            held_units=card.allocated,
            free_units=free,
            not_started_units=_not_started(holders),
            held_bytes=served.worth(card.allocated, shared),
            free_bytes=served.worth(free, shared),
            takes_pods=is_open,
            healthy=is_healthy,
            health_reason=observed.health_reason,
            fault=_shown(fault) if fault and not is_healthy else None,
            cordoned=observed.cordoned,
            cordon_reason=self._cordon_reason(observed) if observed.cordoned else "",
            serves=mode_serving(lock).name if lock and len(self.share_node.resources) > 1 else "",
            offers=observed.offers or {},
            holders=holders,
        )

    def _cordon_reason(self, observed: ObservedCard) -> str:
        return cordon_reasons(self.node.metadata.annotations or {}).get(observed.uuid, "")

    def _class_of(self, observed: ObservedCard) -> ResourceClass | None:
        """Returns the class by which the plugin has locked the card."""
        reported = self.share_node.card(observed.uuid) if observed.lock else None
        return reported.lock if reported else None

    def _served(self, lock: ResourceClass | None) -> ServedClass:
        """An open card counts in units of the first class that the node serves."""
        classes = self.share_node.classes
        serving = lock or (classes[0] if classes else ResourceClass.MEMORY)
        return served_class(self.share_node.dialect.name, self.share_node.unit, serving)

    def _holders(self, observed: ObservedCard, served: ServedClass, shared: int) -> Sequence[CardHolder]:
        holding = sorted(share for share in self.ledger.shares(observed.uuid) if share.units)
        if not holding:
            return ()
        by_pod: dict[str, list[ObservedShare]] = {}
        for own in observed.pods or ():
            by_pod.setdefault(_key(own), []).append(own)
        return [self._holder(held, by_pod.get(_key(held), ()), served, shared) for held in holding]

    def _holder(
        self, share: Share, given: Sequence[ObservedShare], served: ServedClass, shared: int
    ) -> CardHolder:
        containers = [self._container(own, served, shared) for own in given]
        return CardHolder(
            namespace=share.namespace,
            name=share.name,
            uid=share.uid,
            state=self._state(share.uid, given),
            units=share.units,
            asked_bytes=served.worth(share.units, shared),
            used_bytes=sum(own.used_bytes or 0 for own in containers)
            if self.knows_containers_use and given
            else None,
            containers=containers,
        )

    def _state(self, uid: str, given: Sequence[ObservedShare]) -> HolderState:
        if not given:
            return HolderState.NOT_STARTED if uid in self.starting else HolderState.STARTED
        return HolderState.ORPHANED if given[0].orphaned else HolderState.STARTED

    def _container(self, own: ObservedShare, served: ServedClass, shared: int) -> ContainerHolding:
        """A whole card of which nothing is reserved has no limit."""
        asked, asked_bytes = self.node.spec.isolation, served.worth(own.units, shared)
        can_have_limit = not served.is_whole or bool(memory_bytes(self.node.spec.reserved_memory))
        exceeded_since = own.exceeded_since if self.knows_containers_use else ""
        return ContainerHolding(
            container=intern(own.container),
            units=own.units,
            asked_bytes=asked_bytes,
            used_bytes=memory_bytes(own.used_memory) if self.knows_containers_use else None,
            isolation=intern(own.isolation),
            limit_bytes=asked_bytes if own.isolation and can_have_limit else None,
            lacks_isolation=can_have_limit and not own.isolation and asked.memory != MemoryIsolation.NONE,
            exceeded_since=exceeded_since,
            evicted_from=eviction_time(exceeded_since, asked) if exceeded_since else "",
        )


def _key(pod: Share | ObservedShare) -> str:
    """Returns what the pod is known by: of some that are orphaned kubelets tell no UID."""
    return pod.uid or f"{pod.namespace}/{pod.name}"


def _not_started(holders: Iterable[CardHolder]) -> int:
    return sum(holder.units for holder in holders if holder.state is HolderState.NOT_STARTED)


def _shown(fault: CardFaultText) -> ShownFault:
    return ShownFault(
        reason=fault.reason, message=fault.message, since=fault.since, last_seen=fault.last_seen
    )
