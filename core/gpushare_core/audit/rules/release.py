"""I4: units are free again only when the kubelet has released them. Compares two readings of one node."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare_core.audit.difference import LEDGER, STATUS, Difference, DifferenceKind, card_name
from gpushare_core.audit.holdings import holdings, kubelet_uids, shares_of
from gpushare_core.audit.records import NodeRecords, PodKey
from gpushare_core.audit.unit_map import unit_map

Counted = Iterable[tuple[PodKey, int]]
"""Pods and their units of one card, by a book."""


@dataclass(frozen=True, slots=True)
class _KubeletUids:
    """By which UID the kubelet knows the pod that a book counts.

    A static pod has had a UID for each of its mirrors, and one of its file while it has no mirror. Books
    change from one to the next at different moments.
    """

    kubelet_uids: Mapping[str, str]
    """API server's UID, now or earlier -> kubelet's UID."""
    known: frozenset[str]
    """All these, and every other UID in the kubelet's books."""

    @classmethod
    def of(cls, before: NodeRecords, after: NodeRecords, mirrors: Mapping[str, str]) -> "_KubeletUids":
        own = {**mirrors, **kubelet_uids(before), **kubelet_uids(after)}
        stored = {key.pod.uid for records in (before, after) for key in records.checkpoint or ()}
        listed = {resource.key.pod.uid for records in (before, after) for resource in records.resources or ()}
        return cls(own, frozenset({*own, *stored, *listed}))

    def of_kubelet(self, pod: PodKey) -> PodKey:
        return PodKey(pod.namespace, pod.name, self.kubelet_uids.get(pod.uid, pod.uid))

    def surely(self, counted: Counted, pod: PodKey) -> int:
        """Returns the units of ``pod``. Any author can annotate a pod as the mirror of another one, but not
        give it that pod's name."""
        return sum(units for key, units in counted if pod.uid == key.uid or pod == self.of_kubelet(key))

    def at_most(self, counted: Counted, pod: PodKey) -> int:
        """As ``surely``, plus the units of pods of that name with an unknown UID: a mirror that has come and
        gone is in no other book."""
        counted = [*counted]
        gone = (units for key, units in counted if key[:2] == pod[:2] and key.uid not in self.known)
        return self.surely(counted, pod) + sum(gone)


def early_releases(
    before: NodeRecords, after: NodeRecords, *, mirrors: Mapping[str, str]
) -> Iterator[Difference]:
    """Yields units that a book counted ``before`` and does not count ``after``, and the kubelet holds all
    along.

    ``mirrors``: UID of a mirror that was seen at any time -> kubelet's UID.
    """
    units = unit_map(after.share_node) or unit_map(before.share_node)
    if units is None:
        return
    names = _KubeletUids.of(before, after, mirrors)
    earlier = {
        (names.of_kubelet(holding.key.pod), holding.key.container, tuple(holding.numbers))
        for holding in holdings(before)
    }
    kept: Counter[tuple[PodKey, str]] = Counter()
    for holding in holdings(after):
        pod = names.of_kubelet(holding.key.pod)
        is_kept = (pod, holding.key.container, tuple(holding.numbers)) in earlier
        if holding.listed and holding.numbers and is_kept:
            for card, count in shares_of(holding.blocks(units)).items():
                kept[pod, card] += count
    for (pod, card), held in kept.items():
        yield from _released(before, after, names, pod=pod, card=card, held=held)


def _released(
    before: NodeRecords, after: NodeRecords, names: _KubeletUids, *, pod: PodKey, card: str, held: int
) -> Iterator[Difference]:
    for teller, counted in (STATUS, _reported), (LEDGER, _in_ledger):
        earlier, later = counted(before, card), counted(after, card)
        if earlier is None or later is None:
            continue
        was, now = names.surely(earlier, pod), names.at_most(later, pod)
        if now < min(was, held):
            yield Difference.of_pod(
                after,
                pod,
                DifferenceKind.RELEASED_EARLY,
                f"{card_name(after, card)}: {teller} counted {was} units for {pod} and counts {now}"
                f" now, while the kubelet has held {held} all along: another pod can be given what is in use;"
                " report a bug: this must never happen",
                card=card,
            )


def _reported(records: NodeRecords, card: str) -> Counted | None:
    """Returns None where the status was not read, or does not have the card."""
    found = records.share_node.card(card) if records.share_node else None
    return None if found is None else [(holder.key.pod, holder.units) for holder in found.holders]


def _in_ledger(records: NodeRecords, card: str) -> Counted | None:
    found = records.ledger.card(card) if records.ledger else None
    return None if found is None else [(share.pod, share.units) for share in found.shares]
