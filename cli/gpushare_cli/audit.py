"""``audit``: reads the records, once more where they differ, and reports what differs."""

import asyncio
from argparse import Namespace

from gpushare_cli.decide.report import AuditReport, audit_json, audit_text
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import read_pods, read_share_nodes
from gpushare_cli.gather.extender import read_extender
from gpushare_cli.gather.node_books import read_node_books
from gpushare_core.audit.auditor import differences, seen_twice
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.readers import cluster_records
from gpushare_core.audit.records import ClusterRecords
from gpushare_core.kube.client import KubeClient

HOW_TO_READ = {
    "the kubelet's books": "the kubelet's books (run it on a node, with --node and --host-folder)",
    "the extender's ledger": "the extender's ledger (run it on a control-plane node, with --extender)",
}


async def audit(client: KubeClient, options: Namespace) -> AuditReport:
    """Reports the differences that last for ``options.settle`` seconds. Raises ``CannotLookError``."""
    records = await _read(client, options)
    found = differences(records)
    if found and options.settle:
        await asyncio.sleep(options.settle)
        records = await _read(client, options)
        found = seen_twice(found, differences(records))
    return _report(records, found, options)


async def _read(client: KubeClient, options: Namespace) -> ClusterRecords:
    """Reads the kubelet's records last, so that they are not older than the others."""
    pods = await read_pods(client, options.node)
    share_nodes = await read_share_nodes(client, options.node)
    ledger = (
        await asyncio.to_thread(read_extender, options.extender, options.keys) if options.extender else None
    )
    if options.node and not share_nodes:
        raise CannotLookError(
            f"there is no GPUShareNode {options.node!r}: the name in --node is wrong, or no policy shares the"
            " node; see kubectl get gpushare"
        )
    folder = options.host_folder
    hosts = {options.node: await asyncio.to_thread(read_node_books, folder)} if folder else {}
    return cluster_records(share_nodes, pods, ledger=ledger, hosts=hosts)


def _report(records: ClusterRecords, found: list[Difference], options: Namespace) -> AuditReport:
    read = ["annotations", "GPUShareNodes"]
    if options.host_folder:
        read += ["PodResources", "checkpoint", "stored environments"]
    if options.extender:
        read.append("the extender's ledger")
    asked = {"the kubelet's books": options.host_folder, "the extender's ledger": options.extender}
    return AuditReport(
        nodes=len(records.nodes),
        pods=sum(len(node.pods or ()) for node in records.nodes.values()),
        books=tuple(read),
        unread=tuple(HOW_TO_READ[name] for name, given in asked.items() if not given),
        differences=found,
    )


def rendered(report: AuditReport, output: str) -> str:
    return audit_json(report) if output == "json" else audit_text(report)
