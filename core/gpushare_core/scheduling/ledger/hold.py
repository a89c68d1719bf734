"""Units of cards that are kept free for a pod that is not being bound yet."""

from dataclasses import dataclass

from gpushare_core.placement.requests import Request
from gpushare_core.scheduling.objects.holder import Holder

HOLD_SECONDS = 60.0
"""Units are held for so long after the last victim is gone, or has to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keeps the units of ``holder`` from pods that are no more important than the pod it is for. Pods that
    are about to end may still use these units."""

    holder: Holder
    request: Request
    priority: int
    until: float
    """When it ends at the latest, by the clock of whoever made it."""

    @property
    def uid(self) -> str:
        """Of the pod that it is for."""
        return self.holder.uid

    @property
    def node(self) -> str:
        return self.holder.node

    def counts_for(self, uid: str, priority: int) -> bool:
        """Returns whether it keeps the units from the pod with this UID and priority."""
        return uid != self.uid and priority <= self.priority


class Holds(dict[str, Hold]):
    """By the UID of the pod that they are for."""

    def nodes(self) -> set[str]:
        return {hold.node for hold in self.values()}

    def ignorable_for(self, node: str, *, uid: str, priority: int) -> set[str]:
        """Returns the UIDs of the pods whose holds on ``node`` do not count for the pod ``uid``: its own, and
        those for less important pods."""
        there = (hold for hold in self.values() if hold.node == node)
        return {hold.uid for hold in there if not hold.counts_for(uid, priority)}
