"""The books of one node: its cards, and who holds what of them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpushare_core.placement.cards import Card, choose, largest_free
from gpushare_core.placement.ranking import Candidate
from gpushare_extender.ledger.holder import Holding
from gpushare_extender.ledger.share_node import NodeInventory

CLOSED = -1
"""In place of free units: the node takes no pods of ours."""


@dataclass(slots=True)
class NodeBooks:
    """Holdings survive the loss of the inventory: the pods still run, and the policy may come back."""

    inventory: NodeInventory | None = None
    holdings: dict[str, Holding] = field(default_factory=dict)
    """By pod UID."""
    _used: dict[str, int] = field(default_factory=dict)
    """By card UUID, in the node's unit; cards that the inventory does not know (yet) are counted, too."""

    @property
    def is_empty(self) -> bool:
        return self.inventory is None and not self.holdings

    @property
    def largest_free(self) -> int:
        """Free units of the emptiest healthy card, or ``CLOSED``."""
        if self.inventory is None or self.inventory.refusal:
            return CLOSED
        return largest_free(self.cards())

    @property
    def biggest_card(self) -> int:
        """Units of the biggest healthy card; 0 when there is none."""
        return max((card.units for card in self.cards() if card.healthy), default=0)

    def set_inventory(self, inventory: NodeInventory | None) -> None:
        before, self.inventory = self._unit_size, inventory
        if before != self._unit_size:
            self._recount()

    def put(self, holding: Holding) -> None:
        """Takes the place of what the same pod held before."""
        self.remove(holding.uid)
        self.holdings[holding.uid] = holding
        self._count(holding, sign=1)

    def remove(self, uid: str) -> None:
        if holding := self.holdings.pop(uid, None):
            self._count(holding, sign=-1)

    def choose(self, units: int) -> Card | None:
        """The card that ``units`` would go to now, None when none has room or the node is closed."""
        if self.inventory is None or self.inventory.refusal:
            return None
        return choose(self.cards(), units, self.inventory.strategy)

    def cards(self) -> Iterator[Card]:
        """The known cards as they stand, in order of index."""
        for card in self.inventory.cards if self.inventory else ():
            yield Card(card.uuid, card.index, card.units, self._used.get(card.uuid, 0), card.healthy)

    def candidate(self, units: int) -> Candidate | None:
        """What ranking needs to know, or None when ``units`` do not fit."""
        card = self.choose(units)
        if card is None or self.inventory is None:
            return None
        return Candidate(self.inventory.compute_score, sum(self._used.values()), card.free - units)

    def units_in(self, holding: Holding, card: str) -> int:
        """What ``holding`` takes of ``card`` in the node's unit."""
        return self._in_own_unit(holding.units_of(card), holding.unit_size)

    @property
    def _unit_size(self) -> int:
        return self.inventory.unit_size if self.inventory else 0

    def _in_own_unit(self, units: int, size: int) -> int:
        """Rounded up: a pod that stayed over a change of the unit must not be counted too small."""
        own = self._unit_size
        return units if not own or not size or own == size else -(-units * size // own)

    def _recount(self) -> None:
        self._used.clear()
        for holding in self.holdings.values():
            self._count(holding, sign=1)

    def _count(self, holding: Holding, *, sign: int) -> None:
        for card, units in holding.cards:
            used = self._used.get(card, 0) + sign * self._in_own_unit(units, holding.unit_size)
            if used:
                self._used[card] = used
            else:
                self._used.pop(card, None)
