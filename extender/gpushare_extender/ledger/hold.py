"""Units of cards that are kept free for a pod that is not being bound yet."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpushare_core.placement.requests import Request
from gpushare_extender.objects.holder import Holder

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


@dataclass(slots=True)
class Holds:
    """All of them; a pod has one at most."""

    _by_uid: dict[str, Hold] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Hold]:
        return iter([*self._by_uid.values()])

    def put(self, hold: Hold) -> None:
        self._by_uid[hold.uid] = hold

    def pop(self, uid: str) -> Hold | None:
        return self._by_uid.pop(uid, None)

    def of(self, uid: str) -> Hold | None:
        return self._by_uid.get(uid)

    def nodes(self) -> set[str]:
        return {hold.node for hold in self._by_uid.values()}

    def ignorable_for(self, node: str, *, uid: str, priority: int) -> set[str]:
        """Returns the UIDs of the pods whose holds on ``node`` do not count for the pod ``uid``: its own, and
        those for less important pods."""
        there = (hold for hold in self._by_uid.values() if hold.node == node)
        return {hold.uid for hold in there if not hold.counts_for(uid, priority)}
