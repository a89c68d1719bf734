"""Which pods of a node are ending, and can be expected to end. Pure.

A container that hangs in its driver does not end, whatever its grace period. Nobody waits for its units for
ever, and they are not held for a pod that will not get them.
"""

from collections.abc import Iterable

from gpushare_core.scheduling.preemption.bound_pods import BoundPod

OVERDUE_SECONDS = 60.0
"""So long after its grace period a pod that is still ending counts as one that stays."""


class EndingPods:
    """Remembers since when pods are ending. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, float]] = {}
        """Node -> UID of a pod there that is ending -> when that was seen first."""

    def of(self, node: str, pods: Iterable[BoundPod], *, now: float) -> list[BoundPod]:
        """Returns those of ``pods``, all pods of ``node``, that are ending and not overdue."""
        ending, before = [pod for pod in pods if pod.is_terminating], self._since.pop(node, {})
        since = {pod.uid: before.get(pod.uid, now) for pod in ending}
        if since:
            self._since[node] = since
        return [pod for pod in ending if now - since[pod.uid] <= pod.grace + OVERDUE_SECONDS]
