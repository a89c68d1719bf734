"""I4: units are free again only when the kubelet has released them. A rule over two pictures of one node."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare_core.audit.difference import LEDGER, STATUS, Difference, DifferenceKind, card_name
from gpushare_core.audit.holdings import holdings, kubelet_uids, shares_of
from gpushare_core.audit.records import NodeRecords, PodKey
from gpushare_core.audit.unit_map import unit_map

Counted = Iterable[tuple[PodKey, int]]
"""What a book counts of one card: pods and their units."""


@dataclass(frozen=True, slots=True)
class _Names:
    """Which pod of the kubelet's it is that a book counts. A static pod has as many UIDs as it has had
    mirrors, and that of its file where it has none: books change from one to the other at other moments."""

    kubelet_uids: Mapping[str, str]
    """UID that the API server has, or had -> that of the kubelet."""
    known: frozenset[str]
    """These, and every UID that the kubelet has."""

    @classmethod
    def of(cls, before: NodeRecords, after: NodeRecords, mirrors: Mapping[str, str]) -> "_Names":
        own = {**mirrors, **kubelet_uids(before), **kubelet_uids(after)}
        stored = {key.pod.uid for records in (before, after) for key in records.checkpoint or ()}
        listed = {resource.key.pod.uid for records in (before, after) for resource in records.resources or ()}
        return cls(own, frozenset({*own, *stored, *listed}))

    def of_kubelet(self, pod: PodKey) -> PodKey:
        return PodKey(pod.namespace, pod.name, self.kubelet_uids.get(pod.uid, pod.uid))

    def surely(self, counted: Counted, pod: PodKey) -> int:
        """Returns the units that are ``pod``'s. Whoever makes a pod can annotate that it is the mirror of any
        other one, but not give it that one's name."""
        return sum(units for key, units in counted if pod.uid == key.uid or pod == self.of_kubelet(key))

    def at_most(self, counted: Counted, pod: PodKey) -> int:
        """As ``surely``, with those of a pod of that name which nobody has: of a mirror that has come and
        gone no other book says whose it was."""
        counted = [*counted]
        gone = (units for key, units in counted if key[:2] == pod[:2] and key.uid not in self.known)
        return self.surely(counted, pod) + sum(gone)


def early_releases(
    before: NodeRecords, after: NodeRecords, *, mirrors: Mapping[str, str]
) -> Iterator[Difference]:
    """Yields what a book counted ``before`` and does not ``after``, while the kubelet holds it all along.

    ``mirrors``: UID of mirrors that were seen at any time -> that of the kubelet.
    """
    units = unit_map(after.share_node) or unit_map(before.share_node)
    if units is None:
        return
    names = _Names.of(before, after, mirrors)
    earlier = {
        (names.of_kubelet(holding.key.pod), holding.key.container, tuple(holding.numbers))
        for holding in holdings(before)
    }
    kept: Counter[tuple[PodKey, str]] = Counter()
    for holding in holdings(after):
        pod = names.of_kubelet(holding.key.pod)
        if (
            holding.listed
            and holding.numbers
            and (pod, holding.key.container, tuple(holding.numbers)) in earlier
        ):
            for card, count in shares_of(holding.blocks(units)).items():
                kept[pod, card] += count
    for (pod, card), held in kept.items():
        yield from _released(before, after, names, pod=pod, card=card, held=held)


def _released(
    before: NodeRecords, after: NodeRecords, names: _Names, *, pod: PodKey, card: str, held: int
) -> Iterator[Difference]:
    for teller, counted in (STATUS, _reported), (LEDGER, _booked):
        earlier, later = counted(before, card), counted(after, card)
        if earlier is None or later is None:
            continue
        was, now = names.surely(earlier, pod), names.at_most(later, pod)
        if now < min(was, held):
            yield Difference(
                node=after.node,
                kind=DifferenceKind.RELEASED_EARLY,
                card=card,
                pod=str(pod),
                uid=pod.uid,
                sentence=f"{card_name(after, card)}: {teller} counted {was} units for {pod} and counts {now}"
                f" now, while the kubelet has held {held} all along: another pod can be given what is in use;"
                " report a bug: this must never happen",
            )


def _reported(records: NodeRecords, card: str) -> Counted | None:
    """Returns None where the book was not read, or does not know the card."""
    found = records.share_node.card(card) if records.share_node else None
    return None if found is None else [(holder.key.pod, holder.units) for holder in found.holders]


def _booked(records: NodeRecords, card: str) -> Counted | None:
    found = records.ledger.card(card) if records.ledger else None
    return None if found is None else [(share.pod, share.units) for share in found.shares]
