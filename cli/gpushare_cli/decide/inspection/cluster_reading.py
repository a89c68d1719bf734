"""What was read of the cluster, and the extender's ledger made from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Raw

from gpushare_cli.decide.objects.pending_pod import PendingPod
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_core.text.json_object import UNREADABLE_JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReading:
    share_nodes: Sequence[Raw]
    pending: Sequence[PendingPod] = ()
    """Pods in the phase Pending, bound or not."""
    unschedulable_nodes: frozenset[str] = frozenset()
    """Those that ``kubectl cordon`` closed."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""


@dataclass(frozen=True, slots=True)
class ReadLedger:
    """The ledger as the extender makes it, without what only the extender knows: reservations for binds under
    way, and units that are held for preemptors."""

    ledger: Ledger
    nodes: Mapping[str, Raw] = field(default_factory=dict)
    """Name -> GPUShareNode, in order of name."""


def read_ledger(reading: ClusterReading) -> ReadLedger:
    """Pods that run are in the GPUShareNodes; of those that have not started the annotations count."""
    ledger = Ledger()
    nodes: dict[str, Raw] = {}
    shared: list[ShareNode] = []
    for raw in reading.share_nodes:
        try:
            shared.append(read_share_node(raw))
        except UNREADABLE_JSON:  # it has no name
            continue
        nodes[shared[-1].name] = raw
    ledger.replace_share_nodes(shared)
    for pod in reading.pending:
        if pod.node:
            ledger.set_pod(pod.update)
    return ReadLedger(ledger, {name: nodes[name] for name in sorted(nodes)})
