"""What was read of the cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Raw

from gpushare_cli.decide.ledger import by_node
from gpushare_cli.decide.objects.pending_pod import PendingPod
from gpushare_core.scheduling.objects.holder import PodUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReading:
    share_nodes: Sequence[Raw]
    pending: Sequence[PendingPod] = ()
    """Pods in the phase Pending, bound or not."""
    booked: Sequence[PodUpdate] = ()
    """What bound pods have by their annotations, those that run among them; of the nodes whose pods were
    read."""
    unschedulable_nodes: frozenset[str] = frozenset()
    """Those that ``kubectl cordon`` closed."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""

    def bound_pods(self) -> Mapping[str, Collection[PodUpdate]]:
        """Returns node -> what bound pods have that count on it: its GPUShareNode may not show them yet."""
        return by_node([*self.booked, *(pod.update for pod in self.pending if pod.node)])

    def starting_pods(self) -> frozenset[str]:
        """Returns the UIDs of the pods that are bound and do not run yet."""
        return frozenset(pod.metadata.uid for pod in self.pending if pod.node)
