"""Pods that are gone, and whose units may not have been given back yet."""

from collections.abc import Iterable
from dataclasses import dataclass, field

UNRELEASED_SECONDS = 4.0
"""In which a plugin has told of a pod that the kubelet admitted. Before, a burst of pods may be admitted.
Less than the 5 s of quiet after which all books agree."""


@dataclass(frozen=True, slots=True)
class UnreleasedPod:
    """A pod that is gone, and that counts where the kubelet may have given it units."""

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
        """Removes the pod; returns the nodes on which it counted."""
        departure = self._by_uid.pop(uid, None)
        return departure.nodes if departure else frozenset()

    def on(self, node: str) -> list[str]:
        """Returns the UIDs of those that count on ``node``."""
        return [uid for uid, each in self._by_uid.items() if node in each.nodes]

    def overdue(self, now: float) -> list[str]:
        """Returns the UIDs of those of which their node's plugin would have told by now."""
        return [uid for uid, each in self._by_uid.items() if now - each.since >= UNRELEASED_SECONDS]
