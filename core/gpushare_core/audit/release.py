"""I4: units are free again only when the kubelet has released them. A rule over two pictures of one node."""

from collections import Counter
from collections.abc import Iterator, Mapping

from gpushare_core.audit.books import NodeBooks, PodKey
from gpushare_core.audit.difference import Difference, Kind
from gpushare_core.audit.holdings import holdings, shares_of
from gpushare_core.audit.unit_map import unit_map
from gpushare_core.audit.wording import LEDGER, STATUS, card_name

Counts = Mapping[tuple[str, str], int]
"""UID of a pod and UUID of a card -> units."""


def early_releases(before: NodeBooks, after: NodeBooks) -> Iterator[Difference]:
    """Yields what a book counted ``before`` and does not ``after``, while the kubelet holds it all along."""
    units = unit_map(after.share_node) or unit_map(before.share_node)
    if units is None:
        return
    earlier = {(each.key, tuple(each.numbers)) for each in holdings(before)}
    kept: Counter[tuple[PodKey, str]] = Counter()
    for each in holdings(after):
        if each.listed and each.numbers and (each.key, tuple(each.numbers)) in earlier:
            for card, count in shares_of(each.blocks(units)).items():
                kept[each.key.pod, card] += count
    for (pod, card), count in kept.items():
        yield from _released(before, after, pod=pod, card=card, held=count)


def _released(
    before: NodeBooks, after: NodeBooks, *, pod: PodKey, card: str, held: int
) -> Iterator[Difference]:
    for teller, count in (STATUS, _reported), (LEDGER, _booked):
        was, now = count(before, pod.uid, card), count(after, pod.uid, card)
        if was is not None and now is not None and now < min(was, held):
            yield Difference(
                node=after.node,
                kind=Kind.RELEASED_EARLY,
                card=card,
                pod=str(pod),
                uid=pod.uid,
                sentence=f"{card_name(after, card)}: {teller} counted {was} units for {pod} and counts {now}"
                f" now, while the kubelet has held {held} all along: another pod can be given what is in use;"
                " report a bug: this must never happen",
            )


def _reported(books: NodeBooks, uid: str, card: str) -> int | None:
    """Returns None where the book was not read, or does not know the card."""
    found = books.share_node.card(card) if books.share_node else None
    return None if found is None else sum(each.units for each in found.holders if each.key.pod.uid == uid)


def _booked(books: NodeBooks, uid: str, card: str) -> int | None:
    found = books.ledger.card(card) if books.ledger else None
    return None if found is None else sum(each.units for each in found.shares if each.pod.uid == uid)
