"""What it costs to see whether books agree, at 5,000 nodes of 8 cards and 40,000 pods: CPU of one process.

Run it by ``python -m bench.books_audit``.
"""

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec
from bench.cluster.cluster_objects import NAMESPACE, Layout, share_node, share_node_status
from bench.peers.objects import merged

from gpushare_core.audit.auditor import status_differences
from gpushare_core.audit.readers import read_share_node as read_book
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import CardUnits, Holder, PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_core.text.json_object import Json
from gpushare_extender.audit.ledger_audit import ChangedNodes, LedgerAudit

NODES, CARDS = 5000, 8
LAYOUT = Layout(nodes=NODES, cards=CARDS, full_every=NODES + 1)


def milliseconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fill(ledger: Ledger) -> None:
    """One pod on each card."""
    for number in range(NODES):
        present = reported(number)
        uids = uids_of(number)
        for card, pod in zip(present.cards, LAYOUT.pods(number), strict=True):
            uid, cards = uids[pod.name], (CardUnits(card.uuid, pod.units),)
            holder = Holder(uid=uid, namespace=NAMESPACE, name=pod.name, node=present.name, cards=cards)
            ledger.set_pod(PodUpdate(uid, holder))
        ledger.set_share_node(present)


def uids_of(number: int) -> dict[str, str]:
    return {pod.name: f"uid-{pod.name}" for pod in LAYOUT.pods(number)}


def reported(number: int, changed: Mapping[str, str] | None = None) -> ShareNode:
    """Returns what the plugin of a node reports; ``changed``: other UIDs of its pods."""
    status = share_node_status(number, LAYOUT, {**uids_of(number), **(changed or {})})
    return read_share_node(msgspec.Raw(msgspec.json.encode(merged(share_node(number), status))))


def of_extender() -> None:
    clock = Clock()
    nodes = ChangedNodes(clock)
    ledger = Ledger(nodes)
    audit = LedgerAudit(ledger, nodes)
    without = milliseconds(lambda: fill(Ledger()))
    noted = milliseconds(lambda: fill(ledger))
    print(f"extender: filling the ledger {without:.0f} ms, with notes of what changed {noted:.0f} ms")
    clock.now = 10.0

    def look_at_all() -> None:
        while nodes.seconds_until_due() is not None:
            audit.audit_due()

    print(f"extender: {NODES} nodes after a start {milliseconds(look_at_all):.0f} ms")
    assert not audit.found
    ledger.set_share_node(reported(1, {LAYOUT.pods(1)[0].name: "another"}))
    clock.now = 20.0
    print(f"extender: one node that changed {milliseconds(look_at_all):.2f} ms")
    print(f"extender: nothing changed {milliseconds(nodes.seconds_until_due):.3f} ms")


def of_operator() -> None:
    body = _share_node_json()
    per_node = milliseconds(lambda: [status_differences(read_book(body)) for _ in range(500)]) / 500
    print(
        f"operator: a version of a GPUShareNode {per_node:.2f} ms, of all {NODES} {per_node * NODES:.0f} ms"
    )


def _share_node_json() -> Json:
    cards = [
        {
            "uuid": f"n1-{index}",
            "index": index,
            "memory": "16Gi",
            "units": 16,
            "allocatedUnits": 4,
            "firstUnit": 16 * index,
            "pods": [
                {"namespace": "d", "name": f"p{index}", "uid": f"u{index}", "container": "main", "units": 4}
            ],
        }
        for index in range(CARDS)
    ]
    status = {"memoryUnit": "1Gi", "units": {"total": 128, "allocated": 32}, "cards": cards}
    return {"metadata": {"name": "n1"}, "status": status}


async def main() -> None:
    of_extender()
    of_operator()


if __name__ == "__main__":
    asyncio.run(main())
