"""What the ledger calls when something changes."""


class LedgerListener:
    """Called at every change. A subclass overrides what it needs; every method has to be cheap."""

    def has_room(self, name: str, amount: int) -> None:
        """``amount`` of the extended resource ``name`` fits a node that took less of it before."""

    def card_has_room(self) -> None:
        """A card has more room than before, on a node that serves several resources."""

    def fits(self, uid: str) -> None:
        """The pod may fit now: 1. the node changed on which units are held for it, and it fits there; 2. it
        has no units reserved any more, and so may fit other nodes again."""

    def node_changed(self, node: str) -> None:
        """Anything of the node changed."""
