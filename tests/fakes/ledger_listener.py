"""Who hears of all that a ledger tells, and remembers it."""

from dataclasses import dataclass, field

from gpushare_core.scheduling.ledger.listener import LedgerListener


@dataclass
class HeardChanges(LedgerListener):
    """What was told, in order."""

    rooms: list[tuple[str, int]] = field(default_factory=list)
    """Resource and amount."""
    fits_now: list[str] = field(default_factory=list)
    """UIDs of pods."""
    nodes: list[str] = field(default_factory=list)

    def has_room(self, name: str, amount: int) -> None:
        self.rooms.append((name, amount))

    def fits(self, uid: str) -> None:
        self.fits_now.append(uid)

    def node_changed(self, node: str) -> None:
        self.nodes.append(node)
