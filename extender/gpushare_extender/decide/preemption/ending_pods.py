"""Which pods of a node are on their way out, and can be counted on to go. Pure.

A container that hangs in its driver does not end, whatever its grace period: what it has is not waited for
for ever, nor kept from others in the name of a pod that does not get it.
"""

from collections.abc import Iterable

from gpushare_extender.decide.preemption.bound_pods import BoundPod

OVERDUE_SECONDS = 60.0
"""So long after its grace period a pod that ends still counts as one that stays."""


class EndingPods:
    """Remembers since when pods end. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, float]] = {}
        """Node -> UID of a pod there that ends -> when that was seen first."""

    def of(self, node: str, pods: Iterable[BoundPod], *, now: float) -> list[BoundPod]:
        """Returns those of ``pods``, which are all of ``node``, that end and are not overdue."""
        ending, before = [pod for pod in pods if pod.is_terminating], self._since.pop(node, {})
        since = {pod.uid: before.get(pod.uid, now) for pod in ending}
        if since:
            self._since[node] = since
        return [pod for pod in ending if now - since[pod.uid] <= pod.grace + OVERDUE_SECONDS]
