"""What fits which node, over the whole cluster: derived from the sums of the nodes. Pure."""

from collections.abc import Mapping

from gpushare_core.scheduling.ledger.extended_resources import Greatest
from gpushare_core.scheduling.ledger.fit_index import FitIndex
from gpushare_core.scheduling.ledger.listener import LedgerListener
from gpushare_core.scheduling.ledger.node_ledger import FreeOf, NodeLedger
from gpushare_core.scheduling.ledger.node_room import NodeRoom


class ClusterRoom:
    """Of ``nodes``, by name. Tells ``listener`` where more fits than before."""

    def __init__(self, nodes: Mapping[str, NodeLedger], listener: LedgerListener) -> None:
        self._nodes = nodes
        self._listener = listener
        self._rooms: dict[str, NodeRoom] = {}
        self.rooms: Mapping[str, NodeRoom] = self._rooms
        """Of every node that takes pods of ours."""
        self._free: dict[str, Mapping[FreeOf, int]] = {}
        """Of every such node that serves several resources."""
        self.greatest = Greatest()
        self.index = FitIndex(nodes, self._rooms)

    def follow(self, node: str) -> None:
        """The sums of ``node`` have changed."""
        self.index.forget(node)
        node_ledger = self._nodes[node]
        room, before = node_ledger.room(), self._rooms.pop(node, ())
        for name in {offered.name for offered in before}.difference(offered.name for offered in room or ()):
            self.greatest.drop(name, node)
        if room is not None:
            self._rooms[node] = room
            self._set_greatest(node, room)
        self._set_free(node, node_ledger.free())

    def _set_greatest(self, node: str, room: NodeRoom) -> None:
        for offered in room:
            amount = offered.room.greatest
            if amount > self.greatest.set(offered.name, node, amount):
                self._listener.has_room(offered.name, amount)

    def _set_free(self, node: str, free: Mapping[FreeOf, int]) -> None:
        before = self._free.pop(node, {})
        self._free |= {node: free} if free else {}
        if any(units > before.get(card, 0) for card, units in free.items()):
            self._listener.card_has_room()
