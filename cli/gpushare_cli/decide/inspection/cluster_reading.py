"""What was read of the cluster, and what of each node is free by the extender's own sums."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Raw

from gpushare_cli.decide.objects.pending_pod import PendingPod
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReading:
    share_nodes: Sequence[Raw]
    pending: Sequence[PendingPod] = ()
    """Pods in the phase Pending, bound or not."""
    unschedulable_nodes: frozenset[str] = frozenset()
    """Those that ``kubectl cordon`` closed."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""

    def bound_pods(self) -> Mapping[str, Collection[PodUpdate]]:
        """Returns node -> the pods that count on it and have not started. Those that run are in its
        GPUShareNode."""
        by_node: dict[str, list[PodUpdate]] = {}
        for pod in self.pending:
            if pod.node:
                holder = pod.update.holder
                by_node.setdefault(holder.node if holder else pod.node, []).append(pod.update)
        return by_node


def node_ledger(share_node: ShareNode, bound: Collection[PodUpdate]) -> NodeLedger:
    """Returns the sums of a node as the extender makes them, without what only the extender knows:
    reservations for binds under way, and units that are held for preemptors.

    Node by node: a ledger of thousands of nodes has tens of MiB, and room in it is looked for nowhere here.
    """
    alone = NodeLedger()
    alone.set_share_node(share_node)
    if not bound:
        return alone
    ledger = Ledger()
    ledger.set_share_node(share_node)
    for update in bound:
        ledger.set_pod(update)
    return ledger.node(share_node.name) or alone
