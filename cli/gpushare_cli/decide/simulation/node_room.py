"""Which nodes kube-scheduler itself would let a pod have: labels, taints, CPU, memory and the like."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.simulation.simulated_pod import PodShape
from gpushare_cli.decide.why.node_rules import node_refusal
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import read_amount
from gpushare_core.scheduling.preemption.bound_pods import BoundPod

Amounts = dict[str, Fraction]
"""Resource that is not ours -> amount."""

PODS = "pods"
"""The resource of which each pod takes one."""


def used_by(pods: Iterable[BoundPod]) -> Amounts:
    """Returns what the pods of one node request together."""
    used: Amounts = {}
    for pod in pods:
        _add(used, pod.frees)
    return used


def used_without(
    used: Mapping[str, Amounts], *, node: str, pods: Iterable[BoundPod]
) -> Mapping[str, Amounts]:
    """Returns ``used`` as it is when these pods of ``node`` are gone."""
    if node not in used:
        return used
    gone = used_by(pods)
    left = {name: amount - gone.get(name, Fraction(0)) for name, amount in used[node].items()}
    return {**used, node: left}


def _add(used: Amounts, needs: Mapping[str, Fraction]) -> None:
    for name, amount in {**needs, PODS: Fraction(1)}.items():
        used[name] = used.get(name, Fraction(0)) + amount


@dataclass(slots=True)
class NodeRooms:
    """``nodes``: None where they could not be read. ``used``: of the nodes whose pods were read; elsewhere a
    pod is refused only where it is too large for the empty node."""

    nodes: Mapping[str, KubeNode] | None
    used: Mapping[str, Amounts] = field(default_factory=dict)
    _taken: dict[str, Amounts] = field(default_factory=dict, init=False)
    """By simulated pods."""
    _refusals: dict[tuple[int, str], str] = field(default_factory=dict, init=False)
    """Identity of a shape, and a node -> why not: thousands of pods have the same answer."""
    _allocatable: dict[str, Amounts] = field(default_factory=dict, init=False)

    def refusal(self, shape: PodShape, node: str) -> str:
        """Returns why the pod may not go there, in kube-scheduler's words; empty where it may."""
        if self.nodes is None:
            return ""
        known = self.nodes.get(node)
        if known is None:
            return "node(s) that are no nodes of the cluster any more"
        key = (id(shape), node)
        if key not in self._refusals:
            self._refusals[key] = node_refusal(shape.pod, known)
        return self._refusals[key] or self._lack(shape, known)

    def take(self, shape: PodShape, node: str) -> None:
        _add(self._taken.setdefault(node, {}), shape.other_needs)

    def _lack(self, shape: PodShape, node: KubeNode) -> str:
        """Source: ``fitsRequest`` of kube-scheduler's ``NodeResourcesFit``."""
        allocatable = self._allocatable_of(node)
        used, taken = self.used.get(node.name, {}), self._taken.get(node.name, {})
        for name, amount in {PODS: Fraction(1), **shape.other_needs}.items():
            free = allocatable.get(name, Fraction(0)) - used.get(name, 0) - taken.get(name, 0)
            if amount > free and allocatable:
                return "Too many pods" if name == PODS else f"Insufficient {name}"
        return ""

    def _allocatable_of(self, node: KubeNode) -> Amounts:
        if node.name not in self._allocatable:
            self._allocatable[node.name] = {
                name: read_amount(amount)
                for name, amount in (node.status.allocatable or {}).items()
                if name not in RESOURCES
            }
        return self._allocatable[node.name]
