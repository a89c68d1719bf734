"""Pods that are gone, and whose units the kubelet may not have released yet."""

from dataclasses import dataclass

UNRELEASED_SECONDS = 4.0
"""In which a plugin has reported a pod that the kubelet admitted, behind a burst of other pods. Less than the
5 s of quiet after which all books agree."""


@dataclass(frozen=True, slots=True)
class UnreleasedPod:
    """A pod that is gone, and still counts on ``nodes``: their kubelets may have given it units."""

    nodes: frozenset[str]
    since: float


class UnreleasedPods(dict[str, UnreleasedPod]):
    """By pod UID."""

    def on(self, node: str) -> list[str]:
        """Returns the UIDs of those that count on ``node``."""
        return [uid for uid, pod in self.items() if node in pod.nodes]

    def overdue(self, now: float) -> list[str]:
        """Returns the UIDs of those that their node's plugin would have reported by now."""
        return [uid for uid, pod in self.items() if now - pod.since >= UNRELEASED_SECONDS]
