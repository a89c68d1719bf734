"""What a node can share, read from its GPUShareNode."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from gpushare_core.api.enums import LogLevel, MemoryIsolation, Preemption, UnitChange
from gpushare_core.api.names import ISOLATION_READY, REGISTERED, UNIT_TOO_FINE
from gpushare_core.api.share_node import (
    LenientCard,
    LenientCondition,
    LenientMeta,
    LenientShare,
    LenientShareNode,
    LenientSpec,
    LenientStatus,
)
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.grants import CardPlace
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.table import (
    MEMORY,
    NODE_MODES,
    class_of_lock,
    mode_dividing,
    unit_to_come,
)
from gpushare_core.placement.node_ranking import CANDIDATES
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Meaning, NodeUnit, UnitFields, parse_node_unit, parse_unit
from gpushare_core.text.printable import printable

MAX_MESSAGE = 1024
"""Bytes of a condition's message in a reason, which kube-scheduler writes into every pod that waits."""

ALL_SICK = "node(s) without a healthy GPU card"
ALL_CORDONED = "node(s) whose GPU cards are cordoned"
NO_CARD_REASONS = (ALL_SICK, ALL_CORDONED)
"""Why a node is closed: it has no card that takes new pods."""

SERVED: dict[tuple[str, str], Mapping[str, ResourceClass]] = {
    (dialect.name, mode.name): {dialect.resource_name(way.resource): way.resource for way in mode.served}
    for dialect in DIALECTS.values()
    for mode in NODE_MODES.values()
}
"""Dialect and mode -> name of an extended resource -> its class. Shared by all nodes."""


class ReportedHolder(msgspec.Struct, frozen=True, gc=False):
    """A pod that has units of one card from the kubelet, known to the API or not."""

    uid: str
    namespace: str
    name: str
    units: int
    """The sum over its containers: more than the pod holds where an init container lends to the next ones."""
    least: int
    """Units of its largest container."""
    orphaned: bool = False
    """Whether the API server does not have the pod, by the plugin."""


class ShareNodeCard(msgspec.Struct, frozen=True, gc=False):
    """One card as the node's plugin reports it. The garbage collector does not track it: a cluster has
    many."""

    uuid: str
    index: int
    units: int
    healthy: bool
    allocated: int = 0
    """By the kubelet."""
    holders: tuple[ReportedHolder, ...] = ()
    numa_node: int = -1
    """Negative when unknown."""
    link_group: int = -1
    """Negative when unknown."""
    lock: ResourceClass | None = None
    """The one class that the card serves while units of it are in use."""
    cordoned: bool = False
    offers: Mapping[ResourceClass, int] = MappingProxyType({})
    """In mode Mixed: units of each class that a free card offers."""
    memory: int = 0
    """Bytes; 0 when unknown."""

    @property
    def is_open(self) -> bool:
        return self.healthy and not self.cordoned

    def units_of(self, resource: ResourceClass) -> int:
        return self.offers.get(resource, 0) if self.offers else self.units

    def given(self, booked: Mapping[str, int]) -> dict[str, int]:
        """Returns the units that the kubelet has given to each pod, by UID.

        ``booked``: what the pods have by our own records. That tells how much a pod with lending init
        containers holds as a whole.
        """
        lends = sum(holder.units for holder in self.holders) > self.allocated
        return {
            holder.uid: holder.least if lends and holder.uid in booked else holder.units
            for holder in self.holders
        }

    def surely_given(self, uid: str) -> int:
        """Returns the units that the kubelet has given to a pod as a whole: what its init containers lend to
        the next ones counts once."""
        own = next((holder for holder in self.holders if holder.uid == uid), None)
        if own is None:
            return 0
        others = sum(holder.least for holder in self.holders if holder is not own)
        return max(own.least, min(own.units, self.allocated - others))

    def without(self, uids: Collection[str], booked: Mapping[str, int]) -> "ShareNodeCard":
        """Returns the card as the plugin will report it when these pods are gone."""
        given = self.given(booked)
        freed = sum(given[holder.uid] for holder in self.holders if holder.uid in uids)
        holders = tuple(holder for holder in self.holders if holder.uid not in uids)
        left = max(0, self.allocated - freed)
        return replace(self, allocated=left, holders=holders, lock=self.lock if left or holders else None)

    def units_in_use(self, booked: Mapping[str, int]) -> int:
        """Returns the units that nobody else may get: booked, or given out by the kubelet.

        1. A pod that is in both counts once, with the larger figure.
        2. Units whose holder is not named count, too.
        3. However little is booked, the result is never less than what the kubelet has given out.
        4. Pods that are not booked have at most what the total leaves, whatever their init containers lend.
        """
        named = least = by_pod = 0
        for holder in self.holders:  # sums by hand: a start does this for each card and pod of the cluster
            named += holder.units
            least += holder.least
        total, lends = max(self.allocated, least), named > self.allocated
        others, most, not_given = max(total, named), total, sum(booked.values())
        for holder in self.holders:
            if (units := booked.get(holder.uid)) is not None:
                others -= holder.units
                most -= holder.least
                not_given -= units
                by_pod += max(units, holder.least if lends else holder.units)
        return max(by_pod + min(others, most), total) + not_given


class ShareNode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The part of a GPUShareNode that placement needs."""

    name: str
    cards: tuple[ShareNodeCard, ...] = ()
    """In order of index."""
    unit: str = ""
    """The unit in force as text; units of several classes have commas between."""
    meanings: tuple[Meaning, ...] = ()
    """One for the unit of each class; empty when the unit is unknown."""
    dialect: Dialect = GPUSHARE
    resources: Mapping[str, ResourceClass] = msgspec.field(
        default_factory=lambda: SERVED[GPUSHARE.name, MEMORY.name]
    )
    """Name of an extended resource that the node serves -> its class."""
    strategy: Strategy = Strategy.BINPACK
    candidates: int = CANDIDATES
    """At most so many of the policy's nodes are offered for a pod; 0: all."""
    preempts: bool = True
    compute_score: int = 0
    """Of the node's fastest card."""
    log_level: LogLevel = LogLevel.INFO
    """Asked of the extender by the node's policy."""
    closed_reason: str = ""
    """Why the node takes no pods of ours; empty when it does."""

    @property
    def classes(self) -> tuple[ResourceClass, ...]:
        return tuple(self.resources.values())

    def meaning_of(self, resource: ResourceClass) -> Meaning | None:
        return next((meaning for meaning in self.meanings if meaning[0] is resource), None)

    def unit_of(self, resource: ResourceClass) -> str:
        """Returns the unit of a class as text; empty when it is unknown."""
        unit = node_unit(self.unit)
        return next((part.text for part in unit.parts if part.resource is resource), "") if unit else ""

    def card(self, uuid: str) -> ShareNodeCard | None:
        for card in self.cards:
            if card.uuid == uuid:
                return card
        return None

    def places(self, resource: ResourceClass) -> dict[str, CardPlace]:
        """Returns card UUID -> the card's index and its units of the class."""
        return {card.uuid: CardPlace(card.index, card.units_of(resource)) for card in self.cards}


class _NamedObject(msgspec.Struct):
    metadata: LenientMeta


_STRATEGIES: Mapping[str, Strategy] = {strategy.value: strategy for strategy in Strategy}
_LOG_LEVELS: Mapping[str, LogLevel] = {level.value: level for level in LogLevel}
_DECODER = msgspec.json.Decoder(LenientShareNode)
_NAME_DECODER = msgspec.json.Decoder(_NamedObject)


def read_share_node(raw: msgspec.Raw | bytes) -> ShareNode:
    """Returns a GPUShareNode from its JSON; a node that cannot be read takes no pods.

    Raises:
        msgspec.DecodeError: not even the name can be read.
    """
    try:
        node = _DECODER.decode(raw)
    except msgspec.DecodeError as error:
        name = sys.intern(_NAME_DECODER.decode(raw).metadata.name)
        return ShareNode(name=name, closed_reason=f"its GPUShareNode cannot be read: {error}")
    return _share_node(node, node.status or LenientStatus())


@lru_cache(maxsize=256)
def unit_meaning(unit: str) -> Meaning | None:
    """Returns None for a unit that cannot be read. A cluster has few different units."""
    try:
        return parse_unit(unit).meaning
    except ValueError:
        return None


@lru_cache(maxsize=256)
def node_unit(unit: str) -> NodeUnit | None:
    """Returns None for a unit that cannot be read."""
    try:
        return parse_node_unit(unit)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _meanings(unit: str) -> tuple[Meaning, ...]:
    parsed = node_unit(unit)
    return parsed.meanings if parsed else ()


def _share_node(node: LenientShareNode, status: LenientStatus) -> ShareNode:
    """Mode and dialect are those in force, which differ from the spec while a unit change is blocked."""
    cards, unit = status.cards or [], node_unit(status.memory_unit)
    dialect = DIALECTS.get(status.dialect or node.spec.dialect, GPUSHARE)
    mode, asked = mode_dividing(unit) if unit else MEMORY, node.spec.candidates
    return ShareNode(
        name=sys.intern(node.metadata.name),
        cards=tuple(_card(card) for card in sorted(cards, key=lambda card: card.index)),
        unit=sys.intern(status.memory_unit),
        dialect=dialect,
        meanings=_meanings(status.memory_unit),
        resources=SERVED.get((dialect.name, mode.name), {}),
        strategy=_STRATEGIES.get(node.spec.strategy, Strategy.BINPACK),
        log_level=_LOG_LEVELS.get(node.spec.extender_log_level, LogLevel.INFO),
        preempts=node.spec.preemption != Preemption.DISABLED,
        candidates=CANDIDATES if asked is None else max(0, asked),
        compute_score=max((card.compute_score for card in cards), default=0),
        closed_reason=_closed_reason(node, status),
    )


@lru_cache(maxsize=256)
def _offers(units: tuple[tuple[str, int], ...]) -> Mapping[ResourceClass, int]:
    """Returns class -> units; cards with the same units share the mapping."""
    by_name = dict(units)
    return {resource: by_name[resource] for resource in ResourceClass if resource in by_name}


@lru_cache(maxsize=256)
def _memory(quantity: str) -> int:
    """Returns bytes, 0 for a quantity that cannot be read. Cards of a cluster have few different sizes."""
    try:
        return parse_memory(quantity)
    except ValueError:
        return 0


def _card(card: LenientCard) -> ShareNodeCard:
    return ShareNodeCard(
        sys.intern(card.uuid),
        card.index,
        card.units,
        card.health == "Healthy",
        card.allocated_units,
        tuple(_holders(card.pods or ())),
        card.numa_node,
        card.link_group,
        class_of_lock(card.lock),
        card.cordoned,
        _offers(tuple((card.offers or {}).items())),
        _memory(card.memory),
    )


def _holders(shares: Iterable[LenientShare]) -> Iterable[ReportedHolder]:
    """Yields one for each pod; one without a UID is known by its name alone. Interns texts that the pod's
    annotation has as well."""
    by_pod: dict[str, list[LenientShare]] = {}
    for share in shares:
        by_pod.setdefault(share.uid or f"{share.namespace}/{share.name}", []).append(share)
    for containers in by_pod.values():
        units = [share.units for share in containers]
        first = containers[0]
        yield ReportedHolder(
            sys.intern(first.uid),
            sys.intern(first.namespace),
            sys.intern(first.name),
            sum(units),
            max(units),
            first.orphaned,
        )


def _closed_reason(node: LenientShareNode, status: LenientStatus) -> str:
    """Returns the first reason that applies, in the order in which an administrator wants to know them."""
    if node.metadata.deletion_timestamp:
        return "node(s) being taken out of GPU sharing"
    if node.spec.mode not in NODE_MODES:
        served = ", ".join(NODE_MODES)
        return f"node(s) in mode {node.spec.mode or 'unknown'}, which is not served, only {served}"
    if node.spec.dialect not in DIALECTS:
        return f"node(s) in dialect {node.spec.dialect}, which is not served, only {', '.join(DIALECTS)}"
    conditions = status.conditions or ()
    return (
        _not_registered(conditions)
        or _draining(node.spec, status)
        or _not_isolated(node.spec, status)
        or _no_open_card(status.cards or ())
    )


def _draining(spec: LenientSpec, status: LenientStatus) -> str:
    """Returns a reason where the policy asks for another unit than the one in force: an amount shall mean one
    size. No reason where the asked unit was refused, and so never comes into force."""
    if spec.unit_change == UnitChange.KEEP or _is_true(UNIT_TOO_FINE, status.conditions or ()):
        return ""
    asked = unit_to_come(spec.mode, UnitFields(spec.memory_unit, spec.slices_per_card), status.memory_unit)
    if asked is None:
        return ""
    return (
        f"node(s) that take no new pods until the pods with units of {status.memory_unit} are gone:"
        f" the policy asks for units of {asked.text}"
    )


def _is_true(type_: str, conditions: Iterable[LenientCondition]) -> bool:
    return any(condition.type == type_ and condition.status == "True" for condition in conditions)


def _not_registered(conditions: Iterable[LenientCondition]) -> str:
    registered = next((condition for condition in conditions if condition.type == REGISTERED), None)
    if registered is not None and registered.status == "True":
        return ""
    reason = "node(s) whose GPU cards are not registered with the kubelet yet"
    message = printable(registered.message, max_bytes=MAX_MESSAGE) if registered is not None else ""
    return f"{reason}: {message}" if message else reason


def _not_isolated(spec: LenientSpec, status: LenientStatus) -> str:
    """Returns a reason where pods would run without the isolation that the policy asks for: also where the
    plugin has not heard of it yet, or is of a version that has none."""
    asked = spec.isolation.memory
    if asked in (MemoryIsolation.NONE, status.isolation):
        return ""
    ready = next((one for one in status.conditions or () if one.type == ISOLATION_READY), None)
    why = f"the plugin does not report yet that it provides isolation {asked}"
    if ready is not None and ready.status == "False":
        why = printable(ready.message, max_bytes=MAX_MESSAGE)
    return f"node(s) without isolation: {why}"


def _no_open_card(cards: Sequence[LenientCard]) -> str:
    healthy = [card for card in cards if card.health == "Healthy"]
    if not healthy:
        return ALL_SICK
    return ALL_CORDONED if all(card.cordoned for card in healthy) else ""
