"""Where records differ: they are read, and once more where they do."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpushare_cli.decide.audit import AuditDifference, AuditReport
from gpushare_cli.decide.objects.policy import ObservedPolicy, placing_engine
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import read_pods, read_share_nodes
from gpushare_cli.gather.extender import read_extender
from gpushare_cli.gather.lists import read_list
from gpushare_cli.gather.node_books import read_node_books
from gpushare_core.api.enums import Engine
from gpushare_core.audit.auditor import differences, seen_twice
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.readers import cluster_records
from gpushare_core.audit.records import ClusterRecords
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import POLICIES

KUBELET_BOOKS, LEDGER = "the kubelet's records", "the extender's ledger"
HOW_TO_READ = {
    KUBELET_BOOKS: f"{KUBELET_BOOKS} (run it on a node, with --node and --host-folder)",
    LEDGER: f"{LEDGER} (run it on a control-plane node, with --extender)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditScope:
    """Which records are compared."""

    node: str
    """Its name; all nodes where it is empty."""
    host_folder: Path | None
    """The kubelet's, on ``node``."""
    extender: str | None
    """URL."""
    keys: Path
    """Of the extender."""


async def find_differences(client: KubeClient, scope: AuditScope, *, settle: float) -> AuditReport:
    """Reports the differences that last for ``settle`` seconds. Raises ``CannotLookError``."""
    records = await _read(client, scope)
    found = differences(records)
    if found and settle:
        await asyncio.sleep(settle)
        records = await _read(client, scope)
        found = seen_twice(found, differences(records))
    may_be_read = [KUBELET_BOOKS, *([LEDGER] if await _has_extender(client) else [])]
    return _report(records, found, scope, may_be_read)


async def _has_extender(client: KubeClient) -> bool:
    """Whether there is an extender, as far as who asks may see: with engine Plugin there is none."""
    try:
        policies = await read_list(client, POLICIES, shape=ObservedPolicy)
    except CannotLookError:
        return True
    return placing_engine(policies) is not Engine.PLUGIN


async def _read(client: KubeClient, scope: AuditScope) -> ClusterRecords:
    """Reads the kubelet's records last, so that they are not older than the others."""
    pods = await read_pods(client, scope.node)
    share_nodes = await read_share_nodes(client, scope.node)
    ledger = await asyncio.to_thread(read_extender, scope.extender, scope.keys) if scope.extender else None
    if scope.node and not share_nodes:
        raise CannotLookError(
            f"there is no GPUShareNode {scope.node!r}: the name in --node is wrong, or no policy shares the"
            " node; see kubectl get gpushare"
        )
    folder = scope.host_folder
    hosts = {scope.node: await asyncio.to_thread(read_node_books, folder)} if folder else {}
    return cluster_records(share_nodes, pods, ledger=ledger, hosts=hosts)


def _report(
    records: ClusterRecords, found: list[Difference], scope: AuditScope, may_be_read: Sequence[str]
) -> AuditReport:
    read = ["annotations", "GPUShareNodes"]
    if scope.host_folder:
        read += ["PodResources", "checkpoint", "stored environments"]
    if scope.extender:
        read.append(LEDGER)
    asked = {KUBELET_BOOKS: scope.host_folder, LEDGER: scope.extender}
    return AuditReport(
        nodes=len(records.nodes),
        pods=sum(len(node.pods or ()) for node in records.nodes.values()),
        books=read,
        unread=[HOW_TO_READ[name] for name in may_be_read if not asked[name]],
        differences=[*map(audit_difference, found)],
    )


def audit_difference(difference: Difference) -> AuditDifference:
    fields = AuditDifference.__struct_fields__
    return AuditDifference(**{name: str(getattr(difference, name)) for name in fields})
