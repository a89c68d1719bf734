"""Which pods were offered only some of the nodes that fit them, and are not bound since. Pure.

What kept such a pod from all of them, such as another extender or the kubelet, is not known here: at its next
attempts it is offered every node that fits.
"""

from collections import OrderedDict

MOST_PODS = 4096
"""Those that were tried longest ago are forgotten first."""
REMEMBERED_SECONDS = 600.0
"""kube-scheduler tries a pod again after 5 minutes at the latest, with whatever else it has to do."""


class OfferedPods:
    """By pod UID. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self, most: int = MOST_PODS) -> None:
        self._most = most
        self._tried: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tried)

    def offered_some(self, uid: str, *, now: float) -> None:
        """The pod was offered some of the nodes that fit it. Without effect on one without UID."""
        if not uid:
            return
        self._tried[uid] = now
        self._tried.move_to_end(uid)
        self._forget_old(now)

    def comes_again(self, uid: str, *, now: float) -> bool:
        """Returns whether the pod was offered only some nodes before; this attempt counts as another one."""
        tried = self._tried.get(uid)
        if tried is None or now - tried > REMEMBERED_SECONDS:
            return False
        self.offered_some(uid, now=now)
        return True

    def settled(self, uid: str) -> None:
        """The pod is bound, or gone."""
        self._tried.pop(uid, None)

    def _forget_old(self, now: float) -> None:
        while self._tried:
            uid, tried = next(iter(self._tried.items()))
            if len(self._tried) <= self._most and now - tried <= REMEMBERED_SECONDS:
                return
            del self._tried[uid]
