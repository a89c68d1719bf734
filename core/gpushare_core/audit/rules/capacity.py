"""I1: no card is granted beyond its capacity, and none serves two classes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from gpushare_core.audit.difference import (
    DELETE_PODS,
    DRIVER,
    LOOK_AT_PLUGIN,
    PODRESOURCES,
    STATUS,
    Difference,
    DifferenceKind,
    card_name,
    list_text,
)
from gpushare_core.audit.holdings import DistinctUnits, Holding, distinct_numbers
from gpushare_core.audit.records import NodeRecords, SeenCards, StatusCard
from gpushare_core.audit.unit_map import UnitMap, UnitNumbers, room, unit_map
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import NodeUnit, readable_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsTaken:
    """Units of one card that one holder has."""

    card: str
    resource: ResourceClass | None
    """None where the book does not say it."""
    units: int
    holder: str


def overfull(
    records: NodeRecords, uses: Iterable[UnitsTaken], *, teller: str, kind: DifferenceKind
) -> Iterator[Difference]:
    """Yields the cards of which more units are taken than there are, or units of two classes.

    ``teller``: the book that says so.
    """
    share_node = records.share_node
    if share_node is None or share_node.unit is None:
        return
    by_card: dict[str, list[UnitsTaken]] = defaultdict(list)
    for use in uses:
        by_card[use.card].append(use)
    for uuid, taken in by_card.items():
        if card := share_node.card(uuid):
            yield from _too_much(records, card, share_node.unit, taken, teller=teller, kind=kind)


def _too_much(
    records: NodeRecords,
    card: StatusCard,
    unit: NodeUnit,
    uses: list[UnitsTaken],
    *,
    teller: str,
    kind: DifferenceKind,
) -> Iterator[Difference]:
    granted: Counter[ResourceClass | None] = Counter()
    for use in uses:
        granted[use.resource] += use.units
    classes = {resource for resource, units in granted.items() if resource and units}
    holders = list_text(use.holder for use in uses)
    advice = f"not all of that can be true, and no new pod comes to the card; {LOOK_AT_PLUGIN}"
    if kind is DifferenceKind.OVER_CAPACITY:
        advice = f"containers can use more memory than there is; {DELETE_PODS}"
    name = card_name(records, card.uuid)
    if len(classes) > 1:
        yield Difference(
            node=records.node,
            kind=DifferenceKind.TWO_CLASSES if kind is DifferenceKind.OVER_CAPACITY else kind,
            card=card.uuid,
            sentence=f"by {teller} {name} serves {' and '.join(sorted(classes))} at once ({holders}): a card"
            f" serves one class at a time; {DELETE_PODS}",
        )
    for resource, units in granted.items():
        there = capacity(records, card, unit, resource)
        if units > there:
            yield Difference(
                node=records.node,
                kind=kind,
                card=card.uuid,
                sentence=f"by {teller} {units} units of {name} are taken by {holders}, and it has room for"
                f" {there}: {advice}",
            )


def capacity(records: NodeRecords, card: StatusCard, unit: NodeUnit, resource: ResourceClass | None) -> int:
    """Returns the units that the card has by its memory, whatever books add up to."""
    present = (records.hardware or {}).get(card.uuid, 0)
    return room(card, unit, resource, min(present, card.memory) if present else 0)


def status_capacity(records: NodeRecords) -> Iterator[Difference]:
    """Yields the cards of which the status has more units allocated than there are."""
    share_node = records.share_node
    if share_node is None or share_node.unit is None:
        return
    for card in share_node.cards:
        if card.allocated > capacity(records, card, share_node.unit, card.lock):
            holders = list_text(f"{holder.key.pod}" for holder in card.holders) or "nobody by name"
            use = UnitsTaken(card=card.uuid, resource=card.lock, units=card.allocated, holder=holders)
            yield from overfull(records, [use], teller=STATUS, kind=DifferenceKind.OVER_CAPACITY)


def kubelet_capacity(records: NodeRecords, held: Iterable[Holding], units: UnitMap) -> Iterator[Difference]:
    """Yields what the kubelet cannot hold, by the cards on which the units lie."""
    held = [*held]
    uses = [
        UnitsTaken(card=block.card, resource=block.resource, units=count, holder=str(holding.key.pod))
        for holding in held
        for block, count in holding.blocks(units).items()
    ]
    for found in overfull(records, uses, teller=PODRESOURCES, kind=DifferenceKind.OVER_CAPACITY):
        # Whether too many units are held is asked of distinct units, for init containers lend theirs.
        if found.kind is DifferenceKind.TWO_CLASSES:
            yield found
    yield from _distinct_overfull(records, held, units)
    for holding in held:
        yield from _wrong_shape(records, holding, units)
        yield from _unknown(records, holding, units)


def _distinct_overfull(records: NodeRecords, held: list[Holding], units: UnitMap) -> Iterator[Difference]:
    """Too many distinct units can be held only

    1. under two names of extended resources, each with a list of its own; or
    2. of a card that is smaller than the status says.
    """
    if not records.hardware and len({part.resource for holding in held for part in holding.units}) < 2:
        return
    distinct: dict[tuple[str, ResourceClass], DistinctUnits] = defaultdict(DistinctUnits)
    for holding in held:
        for name, block, numbers in holding.parts(units):
            distinct[block.card, block.resource].add(holding, name, numbers)
    for (card, resource), found in distinct.items():
        use = UnitsTaken(card=card, resource=resource, units=found.count, holder=list_text(found.pods))
        yield from overfull(records, [use], teller=PODRESOURCES, kind=DifferenceKind.OVER_CAPACITY)


def _wrong_shape(records: NodeRecords, holding: Holding, units: UnitMap) -> Iterator[Difference]:
    by_class: dict[ResourceClass, dict[str, int]] = defaultdict(dict)
    for block, count in holding.blocks(units).items():
        by_class[block.resource][block.card] = count
    for resource, shares in by_class.items():
        asked = mode_serving(resource).on_cards(sum(shares.values()))
        if len(shares) != asked.cards or any(count != asked.units for count in shares.values()):
            where = "on one card" if asked.cards == 1 else f"on {asked.cards} distinct cards"
            lie = ", ".join(
                f"{count} on {card_name(records, card)}" for card, count in sorted(shares.items())
            )
            yield Difference.of_container(
                records,
                holding.key,
                DifferenceKind.WRONG_SHAPE,
                f"the kubelet holds {sum(shares.values())} units of {resource} for {holding.key}, which have"
                f" to lie {where}, and lie {lie}: delete the pod, and report a bug: this must never happen",
            )


def _unknown(records: NodeRecords, holding: Holding, units: UnitMap) -> Iterator[Difference]:
    if numbers := units.unknown(holding.numbers):
        yield Difference.of_container(
            records,
            holding.key,
            DifferenceKind.UNKNOWN_UNIT,
            f"the kubelet holds {len(numbers)} units for {holding.key} that lie on no card of {STATUS}, such"
            f" as number {numbers[0]}: nobody can tell to which card they belong; {LOOK_AT_PLUGIN}",
        )


def granted_twice(records: NodeRecords, held: Iterable[Holding]) -> Iterator[Difference]:
    """Yields the units that the kubelet holds for two containers that run side by side."""
    held = [*held]
    names = {unit.resource for holding in held for unit in holding.units}
    for name in sorted(names):
        if _has_common_numbers(held, name):
            yield from _twice(records, name, held)


def _has_common_numbers(held: Iterable[Holding], name: str) -> bool:
    """Whether two containers have one unit of ``name``: a quick answer before ``_twice``, which needs
    memory."""
    seen = UnitNumbers()
    for holding in held:
        numbers = distinct_numbers(units for units in holding.units if units.resource == name)
        if seen.has_any(numbers):
            return True
        seen.add(numbers)
    return False


def _twice(records: NodeRecords, name: str, held: Iterable[Holding]) -> Iterator[Difference]:
    owners: dict[int, Holding] = {}
    settled: set[tuple[int, int]] = set()
    for holding in held:
        for number in _numbers(holding, name):
            other = owners.setdefault(number, holding)
            if other is holding or (id(other), id(holding)) in settled:
                continue
            settled.add((id(other), id(holding)))
            # PodResources may be older than the checkpoint, or younger.
            both_listed = other.listed and holding.listed
            one_source = both_listed or (other.is_stored and holding.is_stored)
            if _lends(records, other, holding) or not one_source:
                continue
            yield Difference.of_container(
                records,
                holding.key,
                DifferenceKind.GRANTED_TWICE,
                f"the kubelet holds unit number {number} of {name} for {other.key} and for {holding.key}: two"
                f" containers share what one was promised; {DELETE_PODS}",
            )


def _numbers(holding: Holding, name: str) -> Iterator[int]:
    return (number for unit in holding.units if unit.resource == name for number in unit.numbers)


def _lends(records: NodeRecords, one: Holding, other: Holding) -> bool:
    """Whether one of two containers of a pod ends before the other begins."""
    if one.key.pod != other.key.pod:
        return False
    pod = (records.pods or {}).get(one.key.pod.uid)
    request = pod.request if pod else None
    if request is None or not all(_is_as_asked(records, holding, request) for holding in (one, other)):
        return not (one.listed and other.listed)
    order = [*request.containers]
    names = (one.key.container, other.key.container)
    first = min(names, key=lambda name: order.index(name) if name in order else -1)
    return first in request.init_containers


def _is_as_asked(records: NodeRecords, held: Holding, request: PodRequest) -> bool:
    """Whether the container is an init container for the kubelet as in ``request``.

    It is not where a pod took the name and digest of a static pod that has no mirror: the kubelet itself
    takes that pod for the mirror, and its request is not the static pod's.
    """
    name = held.key.container
    is_init = name in request.init_containers
    return name in request.containers and (records.resources is None or held.listed is not is_init)


def environment_capacity(records: NodeRecords) -> Iterator[Difference]:
    """Yields the cards of which containers see more units than there are, or units of two classes."""
    uses = [
        use
        for key, seen in (records.environments or {}).items()
        if seen
        for use in _seen_uses(str(key.pod), seen)
    ]
    yield from overfull(
        records, uses, teller="the environments of running containers", kind=DifferenceKind.OVER_CAPACITY
    )


def _seen_uses(holder: str, seen: SeenCards) -> Iterator[UnitsTaken]:
    unit = readable_unit(seen.unit) if seen.unit else None
    share = (seen.units or 0) // len(seen.cards)
    for card in seen.cards:
        yield UnitsTaken(card=card, resource=unit.resource if unit else None, units=share, holder=holder)


def card_sizes(records: NodeRecords) -> Iterator[Difference]:
    """Yields the cards whose size differs from the hardware's, that share more units than they have, or whose
    units are another card's as well."""
    for card, text in chain(_overlapping(records), _wrong_sizes(records)):
        yield Difference.of_card(records, card, DifferenceKind.CAPACITY_DIFFERS, text)


def _overlapping(records: NodeRecords) -> Iterator[tuple[str, str]]:
    units = unit_map(records.share_node)
    for block, after in pairwise(units.blocks if units else ()):
        if after.first < block.stop:
            other = card_name(records, block.card)
            both = f"the units from number {after.first} on are also those of {other}"
            yield after.card, f"by {STATUS} {both}: nobody can tell which card a container has"


def _wrong_sizes(records: NodeRecords) -> Iterator[tuple[str, str]]:
    share_node, hardware = records.share_node, records.hardware
    for card in share_node.cards if share_node else ():
        there = room(card, share_node.unit, None) if share_node and share_node.unit else card.units
        if card.units > there:
            yield card.uuid, f"{STATUS} shares {card.units} units of it, and its memory is {there}"
        present = (hardware or {}).get(card.uuid)
        if present is not None and present >> 20 != card.memory >> 20:
            sizes = f"{STATUS} gives it {card.memory >> 20}Mi, and by {DRIVER} it has {present >> 20}Mi"
            yield card.uuid, sizes
        if hardware is not None and present is None and card.healthy:
            yield card.uuid, f"{STATUS} calls it healthy, and {DRIVER} does not have it"
