"""Who is told of changes of the ledger."""


class LedgerListener:
    """Told of every change as it is made. A subclass overrides what it wants to hear; each call is cheap."""

    def has_room(self, name: str, amount: int) -> None:
        """``amount`` of the extended resource ``name`` fits a node that took less of it before."""

    def card_has_room(self) -> None:
        """A card has more room than before, on a node that serves several resources."""

    def fits(self, uid: str) -> None:
        """The pod may fit now: 1. the node changed on which units are held for it, and it fits there; 2. it
        has no units reserved any more, and so may fit other nodes again."""

    def node_changed(self, node: str) -> None:
        """Anything of the node changed."""
