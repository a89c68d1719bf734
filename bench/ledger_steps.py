"""How long the extender does nothing but one thing: ``python -m bench.ledger_steps --nodes 50000``.

It has one event loop, so kube-scheduler waits for whatever nothing interrupts. Each such step is timed by the
processor of its thread, alone in a process: what else the machine does is not in it. Prints JSON, in seconds.
"""

import argparse
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from bench.cluster.cluster_objects import Layout, PlacedPod, node_name, share_node, share_node_status
from bench.filter_cost import encoded, filtered, metadata, timed
from bench.filter_latency import filter_request
from bench.rows.programs.extender_process import SAMPLE, UNITS
from bench.rows.programs.scale_extender import sampled

from gpushare_core.audit.difference import LASTING_SECONDS
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_extender.audit.ledger_audit import ChangedNodes, LedgerAudit
from gpushare_extender.cluster.log_levels import LogLevels
from gpushare_extender.decide.figures import ledger_figures
from gpushare_extender.extender import freeze_gc
from gpushare_extender.transport.messages import ENCODER
from gpushare_extender.verbs.inspection import inspect_all
from gpushare_extender.verbs.wire import EXTENDER_ARGS

CALLS = 25
PASSING = 1000
"""Pods that come and go."""
Lists = tuple[list[ShareNode], list[PodUpdate]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.ledger_steps", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods-per-node", type=int, default=8)
    options = parser.parse_args()
    logging.disable()
    print(json.dumps(steps(Layout(nodes=options.nodes, pods_per_node=options.pods_per_node))))
    return 0


def steps(layout: Layout) -> dict[str, float]:
    """Returns the seconds of each step, in the order in which an extender takes them."""
    noted = ChangedNodes(lambda: 0.0)
    ledger = Ledger(noted)
    share_nodes, pods = listed(layout)
    taken = {
        "first list of GPUShareNodes": seconds(lambda: ledger.replace_share_nodes(share_nodes)),
        "first list of pods": seconds(lambda: ledger.replace_pods(pods, begun=0.0)),
        "garbage collector after a list": seconds(freeze_gc),
        "one round of the audit, all nodes due": audit_round(ledger, layout),
        "first filter of all nodes for another amount": seconds(lambda: answers(ledger, layout)),
        **{f"filter, {names:,} names": filter_call(ledger, names) for names in sizes(layout.nodes)},
        "one event of a pod": pod_event(ledger, layout),
    }
    share_nodes, pods = listed(layout)
    return taken | {
        "the same list of GPUShareNodes again": seconds(lambda: ledger.replace_share_nodes(share_nodes)),
        "the same list of pods again": seconds(lambda: ledger.replace_pods(pods, begun=0.0)),
        "inspection of all nodes": seconds(lambda: ENCODER.encode(inspect_all(ledger))),
        "figures for Prometheus": seconds(lambda: [*ledger_figures(ledger)]),
        "log levels of all nodes that appear one by one, all together": log_levels(share_nodes),
    }


def listed(layout: Layout) -> Lists:
    """Returns what the extender reads of two lists, page by page: that is interrupted."""
    share_nodes, pods = [], []
    for index in range(layout.nodes):
        placed = layout.pods(index)
        uids = {pod.name: f"uid-{pod.name}" for pod in placed}
        written = share_node(index) | share_node_status(index, layout, uids)
        share_nodes.append(read_share_node(encoded(written)))
        pods += [read_pod(encoded(metadata(pod, uids[pod.name]))) for pod in placed]
    return share_nodes, pods


def seconds(step: Callable[[], object]) -> float:
    """Returns what ``step`` takes of the processor."""
    begun = time.thread_time()
    step()
    return time.thread_time() - begun


def audit_round(ledger: Ledger, layout: Layout) -> float:
    """Returns what one round of the audit takes, as they follow one another when all nodes are due: a few
    nodes are looked at, and it is asked when the next ones are due."""
    now = 0.0
    nodes = ChangedNodes(lambda: now)
    for index in range(layout.nodes):
        nodes.node_changed(node_name(index))
    now = LASTING_SECONDS
    audit = LedgerAudit(ledger, nodes)

    def round_() -> None:
        nodes.seconds_until_due()
        audit.audit_due()

    return min(seconds(round_) for _ in range(10))


def sizes(nodes: int) -> list[int]:
    """Returns for how many names the filter is asked: as peers are, as kube-scheduler asks, and all."""
    return sorted({min(SAMPLE, nodes), sampled(nodes), nodes})


def filter_call(ledger: Ledger, names: int) -> float:
    """Returns what a call takes from its JSON to the JSON of its answer: the median, each for another pod."""
    offered = [node_name(index) for index in range(names)]
    taken = [
        timed(lambda body: filtered(ledger, body), filter_request(offered, units=UNITS))[1]
        for _ in range(CALLS)
    ]
    return statistics.median(taken) / 1e3


def pod_event(ledger: Ledger, layout: Layout) -> float:
    """Returns what an event takes of a pod that comes, changes once and goes, from its JSON on; of many."""
    placed = [PlacedPod(index, 0, 1, 1000 + index) for index in range(min(PASSING, layout.nodes))]
    known = [(f"uid-{pod.name}", encoded(metadata(pod, f"uid-{pod.name}"))) for pod in placed]

    def pass_by() -> None:
        for uid, content in known:
            ledger.set_pod(read_pod(content))
            ledger.set_pod(read_pod(content))
            ledger.pod_deleted(uid, now=0.0)
        ledger.free_unreleased(now=UNRELEASED_SECONDS)

    return seconds(pass_by) / (3 * len(known))


def answers(ledger: Ledger, layout: Layout) -> Sequence[object]:
    """An amount that nobody has asked for yet."""
    pod = EXTENDER_ARGS.decode(filter_request([], units=UNITS + 1)).pod
    assert pod
    return ledger.answers([node_name(index) for index in range(layout.nodes)], pod.request(ledger.resources))


def log_levels(share_nodes: Iterable[ShareNode]) -> float:
    """Returns what it takes to note the level of each GPUShareNode of a policy that is rolled out."""
    levels = LogLevels()

    def note() -> None:
        for labelled in share_nodes:
            levels.set(labelled)

    return seconds(note)


if __name__ == "__main__":
    sys.exit(main())
