"""The sums of one node: its cards, and which pods have how much of them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare_core.placement.card_choice import Card, choose, largest_free
from gpushare_core.placement.node_ranking import Candidate
from gpushare_extender.ledger.holder import Holder
from gpushare_extender.ledger.share_node import ShareNode


class FreeUnits(NamedTuple):
    """What the healthy cards of a node offer to one request.

    A tuple, for a filter hashes it for every node that fails.
    """

    largest: int
    """Free units of the emptiest card."""
    biggest_card: int
    """Units of the biggest card, free or not."""


@dataclass(slots=True)
class NodeLedger:
    """Holders survive the loss of the GPUShareNode: the pods still run, and the policy may come back."""

    share_node: ShareNode | None = None
    holders: dict[str, Holder] = field(default_factory=dict)
    """By pod UID."""
    _allocated: dict[str, int] = field(default_factory=dict)
    """By card UUID, in the node's unit; cards that the GPUShareNode does not name (yet) are counted, too."""

    @property
    def is_empty(self) -> bool:
        return self.share_node is None and not self.holders

    @property
    def open_share_node(self) -> ShareNode | None:
        """The GPUShareNode if the node takes pods of ours."""
        return None if self.share_node is None or self.share_node.closed_reason else self.share_node

    def free_units(self) -> FreeUnits | None:
        """Returns None for a node that takes no pods of ours."""
        if self.open_share_node is None:
            return None
        cards = list(self.cards())
        biggest = max((card.units for card in cards if card.healthy), default=0)
        return FreeUnits(largest_free(cards), biggest)

    def set_share_node(self, share_node: ShareNode | None) -> None:
        before, self.share_node = self._unit_size, share_node
        if before != self._unit_size:
            self._recount()

    def put(self, holder: Holder) -> None:
        """Takes the place of what the same pod had before."""
        self.remove(holder.uid)
        self.holders[holder.uid] = holder
        self._count(holder, sign=1)

    def remove(self, uid: str) -> None:
        if holder := self.holders.pop(uid, None):
            self._count(holder, sign=-1)

    def cards(self) -> Iterator[Card]:
        """Yields the cards of the GPUShareNode with what is allocated of them now, in order of index."""
        for card in self.share_node.cards if self.share_node else ():
            yield Card(card.uuid, card.index, card.units, self._allocated.get(card.uuid, 0), card.healthy)

    def choose(self, units: int) -> Card | None:
        """Returns the card that ``units`` would go to now, or None when they do not fit."""
        share_node = self.open_share_node
        return choose(self.cards(), units, share_node.strategy) if share_node else None

    def candidate(self, units: int) -> Candidate | None:
        """Returns what ranking needs to know, or None when ``units`` do not fit."""
        share_node, card = self.open_share_node, self.choose(units)
        if share_node is None or card is None:
            return None
        return Candidate(share_node.compute_score, sum(self._allocated.values()), card.free - units)

    def units_in(self, holder: Holder, card: str) -> int:
        """Returns what ``holder`` has of ``card`` (UUID) in the node's unit."""
        return self._in_node_unit(holder.units_of(card), holder.unit_size)

    @property
    def _unit_size(self) -> int:
        return self.share_node.unit_size if self.share_node else 0

    def _in_node_unit(self, units: int, size: int) -> int:
        """Rounded up: a pod that stayed over a change of the unit must not be counted too small."""
        own = self._unit_size
        return units if not own or not size or own == size else -(-units * size // own)

    def _recount(self) -> None:
        self._allocated.clear()
        for holder in self.holders.values():
            self._count(holder, sign=1)

    def _count(self, holder: Holder, *, sign: int) -> None:
        for card, units in holder.cards:
            allocated = self._allocated.get(card, 0) + sign * self._in_node_unit(units, holder.unit_size)
            if allocated:
                self._allocated[card] = allocated
            else:
                self._allocated.pop(card, None)
