"""Which cards people have cordoned, by an annotation of the GPUShareNode such as ``GPU-4f1c...,1``.

It has UUIDs or indices of cards, with commas or spaces in between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.devices.card import Reading

_MAX_WORD = 60
"""Characters of a word in a message."""


@dataclass(frozen=True, slots=True)
class Cordon:
    cards: frozenset[str] = frozenset()
    """UUIDs."""
    unknown: tuple[str, ...] = ()
    """Words of the annotation that name no card of the node."""


NO_CORDON = Cordon()


def read_cordon(share_node: GPUShareNode, reading: Reading) -> Cordon:
    """An index means the card that has it in the status, which is what people see."""
    shown = [(card.index, card.uuid) for card in share_node.status.cards]
    shown += [(card.index, card.uuid) for card in reading.cards]
    shown += [(card.index, card.uuid) for card in reading.left_out if card.uuid]
    known = {uuid: uuid for _, uuid in shown}
    for index, uuid in shown:
        known.setdefault(str(index), uuid)
    words = share_node.metadata.annotations.get(CORDON_ANNOTATION, "").replace(",", " ").split()
    return Cordon(
        cards=frozenset(known[word] for word in words if word in known),
        unknown=tuple(dict.fromkeys(word[:_MAX_WORD] for word in words if word not in known)),
    )


def cordoned(reading: Reading, cordon: Cordon) -> Reading:
    if not cordon.cards:
        return reading
    cards = (replace(card, cordoned=card.uuid in cordon.cards) for card in reading.cards)
    return replace(reading, cards=tuple(cards))


def kept_units(layout: Layout | None, holdings: Iterable[Sequence[int]]) -> frozenset[int]:
    """Returns the units in ``holdings``, held or about to be, of cards that take no new pods."""
    placed = [card for card in layout.cards if card.card.is_kept] if layout else []
    if not placed:
        return frozenset()
    spans = [range(card.first, card.end) for card in placed]
    return frozenset(
        number for numbers in holdings for number in numbers if any(number in span for span in spans)
    )
