"""The books of the whole cluster: which units of which card are free. Pure and synchronous.

Three sources meet here: inventories (GPUShareNodes), allocations (annotations of pods that are bound) and
reservations (chosen by a bind whose success no watch has shown yet).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpushare_core.placement.cards import explain
from gpushare_extender.ledger.holder import Holding, PodNews
from gpushare_extender.ledger.node import CLOSED, NodeBooks
from gpushare_extender.ledger.share_node import NodeInventory

UNKNOWN_NODE = "node does not share GPU cards"

_IN_FLIGHT = None
"""In place of the moment of confirmation: whether the Binding came about is not known yet."""


class NoRoomError(Exception):
    """The node does not take the request; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not take a request. ``resolvable``: it would if other pods went."""

    reason: str
    resolvable: bool


Room = tuple[int, int]
"""Free units of the emptiest card, units of the biggest card: healthy cards of one node."""


def lack(units: int, room: Room) -> Refusal:
    """Why ``units`` do not fit into ``room``."""
    largest, biggest = room
    return Refusal(explain(units, largest, biggest=biggest), resolvable=units <= biggest)


class Ledger:
    """Use from one thread. Every method leaves the books consistent."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeBooks] = {}
        self._holdings: dict[str, Holding] = {}
        self._reservations: dict[str, float | None] = {}
        self._largest: dict[str, int] = {}
        self.largest_free: Mapping[str, int] = MappingProxyType(self._largest)
        """Free units of the emptiest healthy card of every node that takes pods of ours."""
        self._biggest: dict[str, int] = {}

    # Inventories

    def set_inventory(self, inventory: NodeInventory) -> None:
        self._books(inventory.name).set_inventory(inventory)
        self._settle(inventory.name)

    def drop_inventory(self, node: str) -> None:
        """The node takes no more pods; what its pods hold stays in the books."""
        if books := self._nodes.get(node):
            books.set_inventory(None)
            self._settle(node)

    def replace_inventories(self, inventories: Iterable[NodeInventory]) -> None:
        """All there are: nodes that are not among them take no more pods."""
        present = {inventory.name: inventory for inventory in inventories}
        for node in self._nodes.keys() - present.keys():
            self.drop_inventory(node)
        for inventory in present.values():
            self.set_inventory(inventory)

    # Allocations

    def set_pod(self, news: PodNews) -> None:
        """A bound pod was seen. Its annotation takes the place of its reservation."""
        if news.holding is not None:
            self._reservations.pop(news.uid, None)
            self._put(news.holding)
        elif not self.is_in_flight(news.uid):
            self.drop_pod(news.uid)

    def drop_pod(self, uid: str) -> None:
        """The pod is gone, or will never run again: what it held or was to hold is free."""
        self._reservations.pop(uid, None)
        self._remove(uid)

    def replace_pods(self, pods: Iterable[PodNews], *, begun: float) -> None:
        """All bound pods, by a read that began at ``begun``.

        Reservations that are in flight stay, and so do those confirmed since: the read may have missed them.
        """
        present = {news.uid: news for news in pods}
        for uid in self._holdings.keys() - present.keys():
            if not self._may_be_missing(uid, begun):
                self.drop_pod(uid)
        for news in present.values():
            self.set_pod(news)

    # Reservations

    def reserve(self, *, uid: str, namespace: str, name: str, node: str, units: int) -> Holding:
        """Choose a card of ``node`` and keep ``units`` of it for the pod, in one step.

        Raises:
            NoRoomError: the node does not take it, or the pod already holds units.
        """
        if held := self._holdings.get(uid):
            raise NoRoomError(f"pod already holds units on node {held.node}")
        books = self._nodes.get(node)
        card = books.choose(units) if books else None
        if books is None or books.inventory is None or card is None:
            raise NoRoomError(self.refusal(node, units).reason)
        holding = Holding(
            uid=uid,
            namespace=namespace,
            name=name,
            node=node,
            cards=((card.uuid, units),),
            unit_size=books.inventory.unit_size,
        )
        self._reservations[uid] = _IN_FLIGHT
        self._put(holding)
        return holding

    def confirm(self, uid: str, *, now: float) -> None:
        """The pod is bound. Without effect when a watch has shown more since."""
        if uid in self._reservations:
            self._reservations[uid] = now

    def release(self, uid: str) -> None:
        """The pod is surely not bound by us. Without effect on what a watch has shown."""
        if uid in self._reservations:
            self.drop_pod(uid)

    # Questions

    def holding(self, uid: str) -> Holding | None:
        return self._holdings.get(uid)

    def is_reserved(self, uid: str) -> bool:
        """Whether what the pod holds is a reservation that no watch has shown as an allocation yet."""
        return uid in self._reservations

    def is_in_flight(self, uid: str) -> bool:
        """Whether the pod has a reservation of which is not known yet whether the pod is bound."""
        return self._reservations.get(uid, 0.0) is _IN_FLIGHT

    def confirmed_until(self, moment: float) -> list[Holding]:
        """Reservations confirmed by ``moment`` that no watch has shown as allocations yet."""
        confirmed = ((uid, when) for uid, when in self._reservations.items() if when is not None)
        return [self._holdings[uid] for uid, when in confirmed if when <= moment]

    def in_flight(self) -> list[Holding]:
        """Reservations of which is not known yet whether their pods are bound."""
        return [self._holdings[uid] for uid, when in self._reservations.items() if when is _IN_FLIGHT]

    def node(self, name: str) -> NodeBooks | None:
        """For reading only."""
        return self._nodes.get(name)

    def node_names(self) -> list[str]:
        """Nodes with an inventory, sorted."""
        return sorted(name for name, books in self._nodes.items() if books.inventory)

    def unit_in_force(self, node: str) -> str:
        books = self._nodes.get(node)
        return books.inventory.unit if books and books.inventory else ""

    def refusal(self, node: str, units: int) -> Refusal:
        """Why ``node`` does not take ``units``; only to be asked where it does not."""
        books = self._nodes.get(node)
        if books is None or books.inventory is None:
            return Refusal(UNKNOWN_NODE, resolvable=False)
        if books.inventory.refusal:
            return Refusal(books.inventory.refusal, resolvable=False)
        return lack(units, (self._largest[node], self._biggest[node]))

    def room(self, node: str) -> Room | None:
        """What a node that takes pods of ours has on one card; None for any other node."""
        largest = self._largest.get(node)
        return None if largest is None else (largest, self._biggest[node])

    # Upkeep

    def _may_be_missing(self, uid: str, begun: float) -> bool:
        if uid not in self._reservations:
            return False
        confirmed = self._reservations[uid]
        return confirmed is _IN_FLIGHT or confirmed >= begun

    def _put(self, holding: Holding) -> None:
        if self._holdings.get(holding.uid) == holding:
            return
        self._remove(holding.uid)
        self._holdings[holding.uid] = holding
        self._books(holding.node).put(holding)
        self._settle(holding.node)

    def _remove(self, uid: str) -> None:
        if holding := self._holdings.pop(uid, None):
            self._nodes[holding.node].remove(uid)
            self._settle(holding.node)

    def _books(self, node: str) -> NodeBooks:
        return self._nodes.setdefault(node, NodeBooks())

    def _settle(self, node: str) -> None:
        """Keep the index true after a change to ``node``, and forget nodes that nobody needs."""
        books = self._nodes[node]
        if (free := books.largest_free) == CLOSED:
            self._largest.pop(node, None)
            self._biggest.pop(node, None)
        else:
            self._largest[node] = free
            self._biggest[node] = books.biggest_card
        if books.is_empty:
            del self._nodes[node]
