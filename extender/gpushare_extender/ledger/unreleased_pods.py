"""Pods that are gone, and whose units the kubelet may not have released yet."""

from collections.abc import Iterable
from dataclasses import dataclass, field

UNRELEASED_SECONDS = 4.0
"""In which a plugin has reported a pod that the kubelet admitted, behind a burst of other pods. Less than the
5 s of quiet after which all books agree."""


@dataclass(frozen=True, slots=True)
class UnreleasedPod:
    """A pod that is gone, and still counts on ``nodes``: their kubelets may have given it units."""

    nodes: frozenset[str]
    since: float


@dataclass(slots=True)
class UnreleasedPods:
    """All of them, by pod UID."""

    _by_uid: dict[str, UnreleasedPod] = field(default_factory=dict)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def put(self, uid: str, nodes: Iterable[str], *, now: float) -> None:
        self._by_uid[uid] = UnreleasedPod(frozenset(nodes), now)

    def pop(self, uid: str) -> frozenset[str]:
        """Returns the nodes on which the pod counted."""
        pod = self._by_uid.pop(uid, None)
        return pod.nodes if pod else frozenset()

    def on(self, node: str) -> list[str]:
        """Returns the UIDs of those that count on ``node``."""
        return [uid for uid, pod in self._by_uid.items() if node in pod.nodes]

    def overdue(self, now: float) -> list[str]:
        """Returns the UIDs of those that their node's plugin would have reported by now."""
        return [uid for uid, pod in self._by_uid.items() if now - pod.since >= UNRELEASED_SECONDS]
