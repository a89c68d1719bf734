"""Which pods that fitted nowhere would fit now, and kube-scheduler does not know it. Pure.

kube-scheduler tries a pod that an extender refused again when something in the cluster changes, else after
five minutes. It does not see what the extender waits for: a plugin's report that units are free, a card that
is healthy again, or just that the extender hears of a deletion a moment later than the scheduler.
"""

from collections import OrderedDict

from gpushare_core.placement.requests import Request
from gpushare_core.scheduling.ledger.fit_index import Shape, shape_of

MAX_PODS = 4096
"""Of pods that ask for the same some are forgotten first: whatever activates one of them activates all."""


class UnschedulablePods:
    """By pod UID. Use from one thread."""

    def __init__(self, most: int = MAX_PODS) -> None:
        self._most = most
        self._asked: OrderedDict[str, Shape] = OrderedDict()
        self._uids: dict[Shape, dict[str, None]] = {}
        """The pods that ask for the same, refused longest ago first: thousands of pods wait for few different
        amounts."""
        self._would_fit: set[str] = set()
        self._has_forgotten = False
        """Whether some that wait may not be known any more."""

    def refused(self, uid: str, request: Request) -> None:
        """The pod, which asks for ``request``, fits no node as things are now."""
        self.settled(uid)
        asked = self._asked[uid] = shape_of(request)
        self._uids.setdefault(asked, {})[uid] = None
        if len(self._asked) > self._most:
            self._has_forgotten = True
            self._forget(self._least_missed())

    def settled(self, uid: str) -> None:
        """The pod fits somewhere."""
        self._forget(uid)
        self._would_fit.discard(uid)

    def has_room(self, name: str, amount: int) -> bool:
        """More than before, ``amount`` of ``name``, fits a node. Returns whether a pod waits for that."""
        for shape, uids in self._uids.items():
            if any(asked == name and total <= amount for asked, total in shape):
                self._would_fit.update(uids)
        return bool(self._would_fit)

    def card_has_room(self) -> bool:
        """A card has more room on a node of several resources: a pod of several may fit with it, although
        no resource alone fits better than before. Returns whether a pod waits for it."""
        for shape, uids in self._uids.items():
            if len(shape) > 1:
                self._would_fit.update(uids)
        return bool(self._would_fit)

    def fits(self, uid: str) -> bool:
        """The pod would fit now, maybe it alone of those that ask for the same: a card is held for it.
        Returns whether the pod waits for that, or may be one that was forgotten."""
        if uid in self._asked or self._has_forgotten:
            self._would_fit.add(uid)
        return uid in self._would_fit

    def take_waiting(self) -> bool:
        """Returns whether pods would fit that were not tried since. They count as tried from now on, and so
        do those that were forgotten: whatever makes kube-scheduler try one makes it try all."""
        waiting, self._would_fit = self._would_fit, set()
        self._has_forgotten = self._has_forgotten and not waiting
        for uid in waiting:
            self._forget(uid)
        return bool(waiting)

    def _least_missed(self) -> str:
        """Returns one that asks for what most others do, or where all differ the one refused longest ago."""
        alike = max(self._uids.values(), key=len)
        return next(iter(alike if len(alike) > 1 else self._asked))

    def _forget(self, uid: str) -> None:
        if (asked := self._asked.pop(uid, None)) is not None:
            del self._uids[asked][uid]
            if not self._uids[asked]:
                del self._uids[asked]
