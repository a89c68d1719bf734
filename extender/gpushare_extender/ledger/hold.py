"""Units of cards that are kept free for a pod which is not being bound yet."""

from dataclasses import dataclass

from gpushare_core.placement.requests import Request
from gpushare_extender.ledger.holder import Holder


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps the units of ``holder`` from pods that are no more important than the one they are for.

    They may be in use still, by pods that are on their way out.
    """

    holder: Holder
    request: Request
    priority: int
    until: float
    """When it ends at the latest, by the clock of whoever made it."""

    @property
    def uid(self) -> str:
        """Of the pod that they are for."""
        return self.holder.uid

    @property
    def node(self) -> str:
        return self.holder.node

    def counts_for(self, uid: str, priority: int) -> bool:
        """Returns whether the units are kept from a pod with this UID and priority."""
        return uid != self.uid and priority <= self.priority
