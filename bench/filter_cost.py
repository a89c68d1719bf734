"""What the extender's filter and prioritize cost, without HTTP and without a cluster.

A ledger is filled as ``bench.fill_cluster`` fills a cluster, then made uneven by pods of several sizes. Each
call is for another pod, with a bind and an end of a pod after it, as when kube-scheduler is at work:
``python -m bench.filter_cost --nodes 5000 --names 500``
"""

import argparse
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from bench.cluster.cluster_objects import (
    MOMENT,
    NAMESPACE,
    Layout,
    PlacedPod,
    node_name,
    running_status,
    share_node,
    share_node_status,
)
from bench.filter_latency import filter_request
from bench.measuring.percentiles import Percentiles
from msgspec.structs import replace

from gpushare_core.placement.node_ranking import CANDIDATES
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import Narrowing, filter_nodes
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.holder import read_pod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_extender.transport.messages import ENCODER
from gpushare_extender.verbs.wire import EXTENDER_ARGS, ExtenderFilterResult, HostPriority

AT_ONCE = 100
"""Pods that are bound before the first of them ends."""
SIZES = (1, 2, 4, 6)
"""Units of the pods that make nodes uneven."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class FilterCost:
    """Milliseconds of CPU of this thread, per call."""

    passing: int
    """At the last call."""
    filter: Percentiles
    prioritize: Percentiles


def filled_ledger(layout: Layout, *, candidates: int = CANDIDATES) -> Ledger:
    """Returns the ledger of a cluster of ``layout``, whose nodes have up to 7 pods more."""
    ledger = Ledger()
    for index in range(layout.nodes):
        pods = layout.pods(index)
        uids = {pod.name: str(uuid.UUID(int=index << 16 | pod.place)) for pod in pods}
        written = share_node(index) | share_node_status(index, layout, uids)
        ledger.set_share_node(replace(read_share_node(encoded(written)), candidates=candidates))
        for pod in pods:
            ledger.set_pod(read_pod(encoded(metadata(pod, uids[pod.name]))))
        for number in range(index * 5 % 8):
            _bind(ledger, node_name(index), _request(ledger, SIZES[(index // 8 + number) % len(SIZES)]))
    return ledger


def encoded(written: object) -> bytes:
    return json.dumps(written).encode()


def metadata(pod: PlacedPod, uid: str) -> dict[str, object]:
    names = {"name": pod.name, "namespace": NAMESPACE, "uid": uid, "creationTimestamp": MOMENT}
    return {"metadata": names | running_status(pod, uid)["metadata"]}


def _request(ledger: Ledger, units: int) -> PodRequest:
    pod = EXTENDER_ARGS.decode(filter_request([], units=units)).pod
    assert pod
    return pod.request(ledger.resources)


def _bind(ledger: Ledger, node: str, request: PodRequest) -> str:
    """Returns the UID of a new pod, which may not fit."""
    uid = str(uuid.uuid4())
    try:
        ledger.reserve(PodReference(NAMESPACE, uid, uid), node=node, request=request)
    except DoesNotFitError:
        return ""
    return uid


@dataclass(slots=True)
class Scheduler:
    """Asks as kube-scheduler does: for the nodes that follow those of the pod before."""

    ledger: Ledger
    layout: Layout
    names: int
    units: int
    _begin: int = 0
    _bound: list[str] = field(default_factory=list)

    def calls(self, count: int) -> Iterator[tuple[int, float, float]]:
        """Yields how many nodes passed, and the milliseconds of filter and prioritize."""
        for _ in range(count):
            asked = filter_request(self._offered(), units=self.units)
            result, filtering = timed(lambda body: filtered(self.ledger, body), asked)
            passing = result.node_names or []
            scores, scoring = timed(
                lambda body: _prioritize(self.ledger, body), filter_request(passing, units=self.units)
            )
            self._bind_to_best(scores)
            yield len(passing), filtering, scoring

    def _offered(self) -> list[str]:
        first, self._begin = self._begin, (self._begin + self.names) % self.layout.nodes
        return [node_name((first + place) % self.layout.nodes) for place in range(self.names)]

    def _bind_to_best(self, scores: list[HostPriority]) -> None:
        best = max(scores, key=lambda card: card.score)
        self._bound.append(_bind(self.ledger, best.host, _request(self.ledger, self.units)))
        if len(self._bound) > AT_ONCE:
            self.ledger.drop_pod(self._bound.pop(0))


def timed(call: Callable[[bytes], Answer], body: bytes) -> tuple[Answer, float]:
    """Encodes the answer as well."""
    begun = time.thread_time()
    answer = call(body)
    ENCODER.encode(answer)
    return answer, (time.thread_time() - begun) * 1e3


def filtered(ledger: Ledger, body: bytes) -> ExtenderFilterResult:
    args = EXTENDER_ARGS.decode(body)
    assert args.pod
    request = args.pod.request(ledger.resources)
    result = filter_nodes(
        ledger, args.node_names or [], uid=args.pod.metadata.uid, request=request, narrowing=Narrowing()
    )
    return ExtenderFilterResult(
        node_names=result.passing,
        failed_nodes=result.failed,
        failed_and_unresolvable_nodes=result.unresolvable,
    )


def _prioritize(ledger: Ledger, body: bytes) -> list[HostPriority]:
    args = EXTENDER_ARGS.decode(body)
    assert args.pod
    scores = prioritize_nodes(ledger, args.node_names or [], args.pod.request(ledger.resources))
    return [HostPriority(name, score) for name, score in scores.items()]


def measure(ledger: Ledger, layout: Layout, *, names: int, units: int, count: int) -> FilterCost:
    """Returns the cost of ``count`` pods, the first among them, for which nothing is remembered yet."""
    passing, filters, prioritizes = zip(*Scheduler(ledger, layout, names, units).calls(count), strict=True)
    return FilterCost(passing[-1], Percentiles.of(filters), Percentiles.of(prioritizes))


def main() -> None:
    options = _parse()
    layout = Layout(nodes=options.nodes)
    ledger = filled_ledger(layout, candidates=options.candidates)
    names = min(options.names or options.nodes, options.nodes)
    cost = measure(ledger, layout, names=names, units=options.units, count=options.count)
    print(f"{options.nodes} nodes, {names} names, {cost.passing} pass; milliseconds of CPU")
    for verb, taken in (("filter", cost.filter), ("prioritize", cost.prioritize)):
        print(f"{verb}: p50 {taken.p50:.3f} p99 {taken.p99:.3f} max {taken.highest:.3f}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--names", type=int, help="offer so many for each pod; all by default")
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument(
        "--candidates", type=int, default=CANDIDATES, help="placement.candidates of the policy"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
