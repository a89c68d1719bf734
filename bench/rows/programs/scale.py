"""Rows ``scale``: what grows with the cluster, up to sizes beyond what Kubernetes is made for.

The figures are of our programs alone, beside stand-ins: docs/benchmarks.md says what that leaves out.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.measuring.figures import Figure
from bench.measuring.runner import Row, Stage
from bench.measuring.size import Size
from bench.peers.programs import printed_json
from bench.rows.programs import scale_extender, scale_operator, workplace
from bench.rows.programs.workplace import Workplace

NAME = "scale"


def stages(size: Size) -> Iterator[Stage[Any]]:
    """Yields what is measured at each of the sizes, the smallest first."""
    for nodes in size.scale_nodes:
        yield _extender(size, nodes)
        yield _alone(size, nodes)


def _extender(size: Size, nodes: int) -> Stage[scale_extender.LargeBooks]:
    rows = (
        ("What its books take", scale_extender.books),
        ("Auditing all nodes after a start", scale_extender.audit),
        ("Filter with mutual TLS, one connection", scale_extender.filters),
        ("Pods that come, change and go", scale_extender.events),
        ("Everything is listed anew", scale_extender.relist),
    )
    return Stage(
        f"an extender with {nodes:,} nodes",
        partial(scale_extender.entered, size, nodes),
        tuple(Row(NAME, title, measure, 300.0 + nodes / 50) for title, measure in rows),
        300.0 + nodes / 20,
    )


def _alone(size: Size, nodes: int) -> Stage[Workplace]:
    rows = (
        ("Steps of the extender that nothing interrupts", steps),
        ("The operator, and what etcd holds", scale_operator.operator),
    )
    return Stage(
        f"{nodes:,} nodes in memory",
        partial(workplace.entered, size),
        tuple(Row(NAME, title, partial(measure, nodes=nodes), 600.0 + nodes / 10) for title, measure in rows),
    )


async def steps(place: Workplace, nodes: int) -> list[Figure]:
    """By the processor alone. Within the longest wait of kube-scheduler is what comes again and again; what
    comes once, before the first answer, nobody waits for but the kubelet's probes."""
    options = ("--nodes", nodes, "--pods-per-node", place.size.book_pods)
    log = place.subfolder("steps") / "log"
    found = await printed_json("bench.ledger_steps", *options, log=log, deadline=300 + nodes / 100)
    return [Figure(what, 1e3 * seconds, "ms") for what, seconds in found.items()]
