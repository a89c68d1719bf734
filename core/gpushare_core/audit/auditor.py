"""The auditor's questions: where these books differ, and what was released too early."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from gpushare_core.audit.difference import Difference, DifferenceKind, list_text
from gpushare_core.audit.holdings import Holding, holdings
from gpushare_core.audit.records import ClusterRecords, NodeRecords, ShareNodeRecord
from gpushare_core.audit.rules.agreement import accounts, disagreements, kubelet_disagreements, orphan_marks
from gpushare_core.audit.rules.capacity import (
    UnitsTaken,
    card_sizes,
    environment_capacity,
    granted_twice,
    kubelet_capacity,
    overfull,
    status_capacity,
)
from gpushare_core.audit.rules.claims import Claim, claims
from gpushare_core.audit.rules.dialect_words import dialect_differences
from gpushare_core.audit.rules.environments import (
    cards_unasked,
    environments,
    stored_answers,
    written_by_authors,
)
from gpushare_core.audit.rules.forgery import forgeries
from gpushare_core.audit.rules.ledger import ledger_differences
from gpushare_core.audit.rules.release import early_releases
from gpushare_core.audit.rules.sums import (
    kubelet_locks,
    status_locks,
    status_sums,
    uncounted,
    uncounted_foreign,
)
from gpushare_core.audit.rules.unwritable import unwritable
from gpushare_core.audit.rules.without_units import without_units
from gpushare_core.audit.unit_map import UnitMap, unit_map

NO_MIRRORS: Mapping[str, str] = MappingProxyType({})


def differences(records: ClusterRecords) -> list[Difference]:
    """Returns all differences, sorted; empty when all books agree.

    1. A book that was not read is not compared.
    2. While pods come and go only differences count whose ``kind.at_once`` is true.
    3. Books are never read in one instant: a difference counts only when it is ``seen_twice``.
    """
    found = [found for node in records.nodes.values() for found in node_differences(node)]
    return sorted([*found, *_on_two_nodes(records)])


def node_differences(records: NodeRecords) -> list[Difference]:
    """Returns the differences between the books of one node, sorted."""
    if records.share_node is not None and records.share_node.problem:
        return [_unreadable(records.node, records.share_node.problem)]
    claimed, held, units = claims(records), holdings(records), unit_map(records.share_node)
    return sorted(
        [
            *_of_status(records),
            *granted_twice(records, held),
            *environment_capacity(records),
            *(_of_units(records, held, units) if units else ()),
            *disagreements(records, held, accounts(records, held, claimed, units)),
            *kubelet_disagreements(records, held),
            *orphan_marks(records),
            *without_units(records, held, claimed),
            *unwritable(records),
            *uncounted_foreign(records, held),
            *written_by_authors(records, claimed),
            *cards_unasked(records),
            *_promised(records, claimed),
            *ledger_differences(records, claimed),
            *dialect_differences(records, claimed),
            *forgeries(records, claimed, _held_by_pod(held)),
        ]
    )


def _of_status(records: NodeRecords) -> Iterator[Difference]:
    yield from status_capacity(records)
    yield from card_sizes(records)
    yield from status_sums(records)
    yield from status_locks(records)


def _of_units(records: NodeRecords, held: list[Holding], units: UnitMap) -> Iterator[Difference]:
    yield from kubelet_capacity(records, held, units)
    yield from kubelet_locks(records, held, units)
    yield from uncounted(records, held, units)
    yield from stored_answers(records, held, units)
    yield from environments(records, held, units)


def _promised(records: NodeRecords, claimed: Mapping[str, Claim]) -> Iterator[Difference]:
    uses = (
        UnitsTaken(card=card, resource=claim.class_of(card), units=units, holder=str(claim.pod.key))
        for claim in claimed.values()
        if claim.allocation.node == records.node and claim.justified
        for card, units in claim.allocation.held().items()
    )
    yield from overfull(records, uses, teller="the pods' annotations", kind=DifferenceKind.OVER_COUNTED)


def _held_by_pod(held: Iterable[Holding]) -> dict[str, int]:
    units: dict[str, int] = {}
    for holding in held:
        count = len(holding.numbers) + sum(part.foreign for part in holding.units)
        units[holding.key.pod.uid] = units.get(holding.key.pod.uid, 0) + count
    return units


def _unreadable(node: str, problem: str) -> Difference:
    return Difference(
        node=node,
        kind=DifferenceKind.UNREADABLE,
        sentence=f"the GPUShareNode cannot be read: {problem}; nothing of this node was compared. Somebody"
        " else than its plugin may have written its status: restart the plugin of the node",
    )


def _on_two_nodes(records: ClusterRecords) -> Iterator[Difference]:
    """Yields the pods that books have on several nodes."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for node in records.nodes.values():
        for card in node.share_node.cards if node.share_node else ():
            for holder in card.holders:
                found[holder.key.pod.uid][node.node] = str(holder.key.pod)
        for ledger_card in node.ledger.cards if node.ledger else ():
            for share in ledger_card.shares:
                found[share.pod.uid][node.node] = str(share.pod)
    for uid, nodes in found.items():
        if uid and len(nodes) > 1:
            name = next(iter(nodes.values()))
            yield Difference(
                node=min(nodes),
                kind=DifferenceKind.TWO_NODES,
                pod=name,
                uid=uid,
                sentence=f"{name} has units on {list_text(nodes)}: a pod runs on one of them, and the units"
                " of the others are kept from other pods; if this stays, see the extender's log",
            )


def status_differences(share_node: ShareNodeRecord) -> list[Difference]:
    """Returns the differences within one GPUShareNode. They depend on nothing else, and can be remembered by
    its resourceVersion."""
    if share_node.problem:
        return [_unreadable(share_node.name, share_node.problem)]
    return sorted(_of_status(NodeRecords(node=share_node.name, share_node=share_node)))


def released_early(
    before: NodeRecords, after: NodeRecords, *, mirrors: Mapping[str, str] = NO_MIRRORS
) -> list[Difference]:
    """Returns the units that a book counted ``before`` and does not count ``after``, although the kubelet has
    held them for the same container all along.

    Of either, the kubelet's books have to be read last. ``mirrors``: ``kubelet_uids`` of
    pods that were seen earlier. A book may count a static pod under the UID of a mirror that is gone.
    """
    return sorted(early_releases(before, after, mirrors=mirrors))


def seen_twice(before: Iterable[Difference], after: Iterable[Difference]) -> list[Difference]:
    """Returns those of ``after`` that were there ``before``: no effect of reading one book after another."""
    known = {difference.identity for difference in before}
    return [difference for difference in after if difference.identity in known]
