"""Which pods were offered only some of the nodes that fit them, and are not bound since. Pure.

What kept such a pod from all of them, such as another extender or the kubelet, is not known here. At its next
attempts the pod is offered every node that fits.
"""

from typing import NamedTuple

from gpushare_extender.decide.remembered_pods import RememberedPods

MAX_PODS = 16384
"""Each takes about 0.3 KiB."""
REMEMBERED_SECONDS = 1200.0
"""kube-scheduler tries a pod again after 5 minutes at the latest; before that it may have waited 10 minutes
for a volume (``bindTimeoutSeconds``), which another node may have at once."""
ATTEMPT_SECONDS = 1.0
"""In which kube-scheduler asks the next verb after a filter: for scores, a bind, or whom to evict."""
VOLUME_SECONDS = 30.0
"""Of a single node it asks for no scores: what comes next is the bind, after its volumes are provisioned."""


class _Attempt(NamedTuple):
    asked: float
    """When kube-scheduler asked about nodes."""
    timeout: float
    """Seconds in which it proceeds with the pod, if it does."""


class OfferedPods:
    """By pod UID. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self, most: int = MAX_PODS) -> None:
        self._tried = RememberedPods[float](most)
        self._left_out: dict[str, _Attempt] = {}
        """The last attempt of those pods that were offered only some nodes at it, and have not come
        further."""

    def __len__(self) -> int:
        return len(self._tried)

    def offered_some(self, uid: str, *, offered: int, now: float) -> None:
        """The pod was offered so many of the nodes that fit it. Without effect on one without UID."""
        if not uid:
            return
        self._left_out[uid] = _Attempt(now, VOLUME_SECONDS if offered == 1 else ATTEMPT_SECONDS)
        self._try(uid, now=now)

    def is_retry(self, uid: str, *, now: float) -> bool:
        """Returns whether the pod was offered only some nodes before; this attempt counts as another one."""
        tried = self._tried.get(uid)
        if tried is None or now - tried > REMEMBERED_SECONDS:
            return False
        self._left_out.pop(uid, None)
        self._try(uid, now=now)
        return True

    def has_others(self, uid: str, *, now: float) -> bool:
        """Returns whether the pod fits nodes that it was not offered at this attempt: then it needs no other
        pod's place. True once for each attempt."""
        attempt = self._left_out.get(uid)
        if attempt is None or now - attempt.asked > ATTEMPT_SECONDS:
            return False
        self._left_out[uid] = _Attempt(float("-inf"), ATTEMPT_SECONDS)
        return True

    def proceeded(self, uid: str) -> None:
        """kube-scheduler proceeds with the pod: nobody has refused all nodes that it was offered."""
        self._left_out.pop(uid, None)

    def take_refused(self, *, now: float) -> list[str]:
        """Returns, each once, the pods with which kube-scheduler has not proceeded, though they fit other
        nodes."""
        refused = [uid for uid, attempt in self._left_out.items() if now - attempt.asked > attempt.timeout]
        for uid in refused:
            del self._left_out[uid]
        return refused

    def settled(self, uid: str) -> None:
        """The pod is bound, or gone."""
        self._tried.pop(uid, None)
        self._left_out.pop(uid, None)

    def _try(self, uid: str, *, now: float) -> None:
        if forgotten := self._tried.remember(uid, now):
            self._left_out.pop(forgotten[0], None)
        while now - next(iter(self._tried.values())) > REMEMBERED_SECONDS:
            self.settled(next(iter(self._tried)))
