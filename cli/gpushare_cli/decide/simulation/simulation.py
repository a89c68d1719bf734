"""The simulation as a whole: from what was read to what is reported."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gpushare_cli.decide.ledger import ledger_of
from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.workload import Workloads
from gpushare_cli.decide.simulation.node_room import Amounts, NodeRooms
from gpushare_cli.decide.simulation.placing import Placer
from gpushare_cli.decide.simulation.policy_change import ClassUnits, NodeChange, PolicyChange
from gpushare_cli.decide.simulation.redivision import (
    readable_share_node,
    readable_share_nodes,
    units_of,
    with_memory_unit,
)
from gpushare_cli.decide.simulation.simulated_pod import SimulatedPod, moved_pods, pods_of, waiting_pods
from gpushare_cli.decide.simulation.simulation_report import SimulatedPlacement, SimulationReport
from gpushare_cli.decide.simulation.unit_effect import unit_effects
from gpushare_cli.wording import counted, listed, memory_text
from gpushare_core.placement.units import MemoryUnit, convert_units
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.scheduling.preemption.bound_pods import MIRROR
from gpushare_core.text.json_object import Json

EXAMPLE = 4
"""A number in a pod, where none is placed."""
NOT_CONSIDERED = (
    "scores of kube-scheduler's other plugins",
    "preferences and priorities of pods, and preemption",
    "quotas, limit ranges and other admission",
    "other nodes than those with cards",
)
"""For any pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCluster:
    """What was read. None stands for what could not be."""

    share_nodes: Sequence[msgspec.Raw | bytes]
    """GPUShareNodes."""
    booked: Sequence[PodUpdate] = ()
    """What bound pods have by their annotations: their GPUShareNodes may not show them yet."""
    nodes: Mapping[str, KubeNode] | None = None
    used: Mapping[str, Amounts] = field(default_factory=dict)
    """Node -> what its pods request of CPU, memory and the like; only of the nodes whose pods were read."""
    waiting: Sequence[Json] = ()
    """Pods that wait for a node."""
    pods: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """Node -> its pods that have to move."""
    remarks: Sequence[str] = ()
    """What could not be read, and what that means."""

    def ledger(self) -> Ledger:
        """Returns the sums as the engine has them, made anew."""
        return ledger_of(map(read_share_node, self.share_nodes), self.booked)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationQuestion:
    workloads: Workloads = field(default_factory=Workloads)
    with_waiting: bool = False
    """Whether the pods that wait already are placed, before those of ``workloads``."""
    without: Sequence[str] = ()
    unit: MemoryUnit | None = None
    policy: PolicyChange | None = None
    """Its nodes are ``share_nodes`` of the cluster already."""
    units_before: Sequence[ClassUnits] = ()
    units_in_the_end: Sequence[ClassUnits] = ()
    """Of a policy."""


def simulate(cluster: SimulatedCluster, question: SimulationQuestion) -> SimulationReport:
    share_nodes = [*_divided(cluster.share_nodes, question.unit)]
    ledger = ledger_of(map(read_share_node, share_nodes), cluster.booked)
    rooms = NodeRooms(nodes=cluster.nodes, used=cluster.used)
    placer = Placer(ledger=ledger, rooms=rooms, without=frozenset(question.without))
    pods: list[SimulatedPod] = []
    others: list[SimulatedPod] = []
    for pod in _pods(cluster, question):
        (pods if placer.asks(pod) else others).append(pod)
    placements = placer.place_all(pods)
    return SimulationReport(
        placements=placements,
        nodes=len(placer.nodes),
        unit=question.unit.text if question.unit else "",
        unit_changes=_unit_changes(cluster, question.unit),
        without=question.without,
        policy=question.policy,
        units_before=question.units_before,
        units_after=units_of(readable_share_nodes(share_nodes)) if question.units_before else (),
        units_in_the_end=question.units_in_the_end,
        left_out=[*question.workloads.left_out, *_left_out(others), *_staying(cluster)],
        remarks=[*cluster.remarks, *_remarks(cluster, question, placer), *_sizes(placements, question)],
        not_considered=[*NOT_CONSIDERED, *_unconsidered(pods)],
    )


def _divided(
    share_nodes: Iterable[msgspec.Raw | bytes], unit: MemoryUnit | None
) -> Iterator[msgspec.Raw | bytes]:
    for raw in share_nodes:
        read = None if unit is None else readable_share_node(raw)
        yield raw if unit is None or read is None else msgspec.json.encode(with_memory_unit(read, unit))


def _unit_changes(cluster: SimulatedCluster, unit: MemoryUnit | None) -> Sequence[NodeChange]:
    if unit is None:
        return ()
    return [*unit_effects(readable_share_nodes(cluster.share_nodes), unit, ledger=cluster.ledger())]


def _pods(cluster: SimulatedCluster, question: SimulationQuestion) -> Iterator[SimulatedPod]:
    """Moved pods first: they are made anew at once. Then those that wait, then new ones."""
    for node, pods in cluster.pods.items():
        yield from moved_pods((pod for pod in pods if not stays(pod)), node=node)
    if question.with_waiting:
        yield from waiting_pods(cluster.waiting)
    for workload in question.workloads.workloads:
        yield from pods_of(workload)


def controller_of(pod: Json) -> str:
    """Returns the kind of the pod's controller; empty where it has none."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner.get("kind", "")) for owner in owners if owner.get("controller")), "")


def stays(pod: Json) -> bool:
    """Returns whether the pod belongs to its node: nobody makes it anew elsewhere."""
    return controller_of(pod) == "DaemonSet" or MIRROR in (pod["metadata"].get("annotations") or {})


def _staying(cluster: SimulatedCluster) -> Iterator[str]:
    for node, pods in sorted(cluster.pods.items()):
        for pod in filter(stays, pods):
            yield f"pod {pod_text(pod)}: it belongs to node {node}, as a static pod or one of a DaemonSet"


def pod_text(pod: Json) -> str:
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata'].get('name', '')}"


def _left_out(pods: Iterable[SimulatedPod]) -> list[str]:
    """A workload once, whatever the number of its pods."""
    found: dict[str, None] = {}
    for pod in pods:
        others = listed(sorted(name for name in pod.shape.other_needs if "/" in name))
        asks = f", but for {others}" if others else ""
        if not pod.is_waiting:
            text = pod.workload or f"pod {pod.namespace}/{pod.name}"
            found[f"{text}: it asks for no share of a card{asks}"] = None
    return [*found]


def _remarks(cluster: SimulatedCluster, question: SimulationQuestion, placer: Placer) -> Iterator[str]:
    waiting = sum(placer.asks(pod) for pod in waiting_pods(cluster.waiting))
    if waiting and not question.with_waiting:
        verb = "waits" if waiting == 1 else "wait"
        yield (
            f"{counted(waiting, 'pod')} with a request for cards {verb} already and may come first:"
            " --waiting places them ahead."
        )
    if question.unit:
        yield "Pods that run keep their memory; new ones are placed as if all nodes used that unit already."
    for node, pods in cluster.pods.items():
        lonely = [pod_text(pod) for pod in pods if not controller_of(pod)]
        if lonely:
            yield f"Nobody creates these pods of {node} again: they have no controller: {listed(lonely)}."


def _sizes(placements: Iterable[SimulatedPlacement], question: SimulationQuestion) -> Iterator[str]:
    """Numbers in pods stay what they are, and mean something else in another unit."""
    unit, before = question.unit, [each.unit for each in question.units_before if each.resource == "memory"]
    if unit is None or before == [unit.text]:
        return
    asked = {asked for placement in placements for asked in placement.asked}
    numbers = sorted({asked.units for asked in asked if asked.unit == unit.text})[:3] or [EXAMPLE]
    means = ", ".join(f"{number:,} is {memory_text(unit.memory_of(number, 0))}" for number in numbers)
    yield f"Numbers in pods stay what they are and mean another amount: {means} then."
    if len(before) == 1 and (former := _memory_unit(before[0])):
        anew = (
            f"{convert_units(number, former.meaning, unit.meaning):,} in place of {number:,}"
            for number in numbers
        )
        yield f"To ask for the same memory as now, change these pods: {', '.join(anew)}."


def _memory_unit(text: str) -> MemoryUnit | None:
    try:
        return MemoryUnit.parse(text)
    except ValueError:
        return None


def _unconsidered(pods: Sequence[SimulatedPod]) -> Iterator[str]:
    found = {field: pod for pod in pods for field in pod.shape.unconsidered}
    if any(pod.workload for pod in pods):
        yield "objects of the same names that exist already: their pods count besides"
    for what, pod in sorted(found.items()):
        yield f"{what} (such as those of {pod.name})"
