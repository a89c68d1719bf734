"""I3 and I4 for each card: sums, locks, and units that the status calls free and the kubelet holds."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpushare_core.audit.difference import (
    LOOK_AT_PLUGIN,
    STATUS,
    Difference,
    DifferenceKind,
    list_text,
)
from gpushare_core.audit.holdings import DistinctUnits, Holding
from gpushare_core.audit.records import NodeRecords, ShareNodeRecord, StatusCard
from gpushare_core.audit.unit_map import UnitMap
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import ResourceClass


def status_sums(records: NodeRecords) -> Iterator[Difference]:
    """Yields the sums in the status that are not those of its own entries."""
    share_node = records.share_node
    if share_node is None:
        return
    for card in share_node.cards:
        least, most = _held(records, card)
        if not least <= card.allocated <= most:
            entries = f"{least}" if least == most else f"{least} to {most}"
            text = (
                f"{STATUS} says that {card.allocated} units of it are allocated, and its pods have {entries}"
            )
            yield Difference.of_card(records, card.uuid, DifferenceKind.SUMS_DIFFER, text)
    yield from _totals(records, share_node)


def _held(records: NodeRecords, card: StatusCard) -> tuple[int, int]:
    """Returns the least and the most units of ``card`` that pods may hold: containers that run one after the
    other may lend each other units."""
    by_pod: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for holder in card.holders:
        by_pod[holder.key.pod.uid or str(holder.key.pod)].append((holder.key.container, holder.units))
    bounds = [_pod_bounds(records, uid, containers) for uid, containers in by_pod.items()]
    return sum(least for least, _ in bounds), sum(most for _, most in bounds)


def _pod_bounds(records: NodeRecords, uid: str, containers: list[tuple[str, int]]) -> tuple[int, int]:
    if len(containers) == 1:
        return containers[0][1], containers[0][1]
    pod = (records.pods or {}).get(uid)
    units = [count for _, count in containers]
    if pod is None or pod.request is None:
        return max(units), sum(units)
    running = sum(count for name, count in containers if name not in pod.request.init_containers)
    return max(running, *units), sum(units) if pod.request.init_containers else running


def _totals(records: NodeRecords, share_node: ShareNodeRecord) -> Iterator[Difference]:
    said = (share_node.units_total, share_node.units_allocated)
    counted = (
        sum(card.units for card in share_node.cards),
        sum(card.allocated for card in share_node.cards),
    )
    if None not in said and said != counted:
        yield Difference(
            node=records.node,
            kind=DifferenceKind.SUMS_DIFFER,
            sentence=f"{STATUS} says {said[1]} of {said[0]} units, and its cards have {counted[1]} of"
            f" {counted[0]}: {LOOK_AT_PLUGIN}",
        )


def status_locks(records: NodeRecords) -> Iterator[Difference]:
    """Yields the cards of mode Mixed that

    1. serve a class while nobody has units of them;
    2. serve no class while somebody has units of them;
    3. have other units than they offer of their class.
    """
    share_node = records.share_node
    for card in share_node.mixed_cards if share_node else ():
        if card.lock is None and card.allocated:
            text = f"{STATUS} has {card.allocated} units of it allocated, and no class that it serves"
            yield Difference.of_card(records, card.uuid, DifferenceKind.LOCK_DIFFERS, text)
        if card.lock and not card.allocated:
            text = f"{STATUS} keeps it for {card.lock}, and nobody has anything of it"
            yield Difference.of_card(records, card.uuid, DifferenceKind.LOCK_DIFFERS, text)
        offered = card.offers.get(card.lock or ResourceClass.MEMORY)
        if offered is not None and offered != card.units:
            text = f"{STATUS} says {card.units} units and offers {offered} of that class"
            yield Difference.of_card(records, card.uuid, DifferenceKind.SUMS_DIFFER, text)


def kubelet_locks(records: NodeRecords, held: Iterable[Holding], units: UnitMap) -> Iterator[Difference]:
    """Yields the cards of mode Mixed of which the kubelet holds units of another class than they serve."""
    cards = records.share_node.mixed_cards if records.share_node else ()
    found: dict[str, dict[ResourceClass, list[str]]] = defaultdict(lambda: defaultdict(list))
    for holding in held if cards else ():
        for block in holding.blocks(units):
            found[block.card][block.resource].append(str(holding.key.pod))
    for card in cards:
        for resource, pods in found[card.uuid].items():
            if card.lock is not resource:
                text = f"the kubelet holds units of {resource} of it for {list_text(pods)}, and {STATUS} says"
                text = f"{text} that it serves {card.lock or 'every class'}"
                yield Difference.of_card(records, card.uuid, DifferenceKind.LOCK_DIFFERS, text)


def uncounted(records: NodeRecords, held: Iterable[Holding], units: UnitMap) -> Iterator[Difference]:
    """Yields the cards of which the kubelet holds more units than the status counts."""
    share_node = records.share_node
    if share_node is None:
        return
    distinct: dict[str, DistinctUnits] = defaultdict(DistinctUnits)
    for holding in held:
        for name, block, numbers in holding.parts(units):
            distinct[block.card].add(holding, name, numbers)
    for card in share_node.cards:
        count, pods = distinct[card.uuid].count, distinct[card.uuid].pods
        if count > card.allocated:
            text = f"the kubelet holds {count} units of it for {list_text(pods)}, and {STATUS} counts"
            text = f"{text} {card.allocated}: units that are in use look free"
            yield Difference.of_card(records, card.uuid, DifferenceKind.UNCOUNTED, text)


def uncounted_foreign(records: NodeRecords, held: Iterable[Holding]) -> Iterator[Difference]:
    """Yields the pods with devices of a replaced system's plugin for which the status counts nothing at all.

    How many units of which card they hold does not follow from the device IDs.
    """
    share_node = records.share_node
    dialect = DIALECTS.get(share_node.dialect) if share_node else None
    if share_node is None or dialect is None:
        return
    reported = {holder.key.pod.uid for card in share_node.cards for holder in card.holders}
    for holding in held:
        count = sum(part.foreign for part in holding.units if part.resource in dialect.resources)
        if count and holding.key.pod.uid not in reported:
            yield Difference.of_container(
                records,
                holding.key,
                DifferenceKind.UNCOUNTED,
                f"the kubelet holds {count} devices for {holding.key} that the plugin of a replaced"
                f" system gave out, and {STATUS} counts nothing for the pod: what is in use looks free;"
                f" {LOOK_AT_PLUGIN}",
            )
