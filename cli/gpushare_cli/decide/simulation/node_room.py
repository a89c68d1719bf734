"""Which nodes kube-scheduler itself would let a pod have: labels, taints, CPU, memory and the like."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.scheduling.node_rules import NodeObstacle, PlacementRule, obstacles
from gpushare_cli.decide.scheduling.written_pod import WrittenSpec
from gpushare_cli.decide.simulation.simulated_pod import PodShape, other_needs
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import read_amount

Amounts = dict[str, Fraction]
"""Resource that is not ours -> amount."""

PODS = "pods"
"""The resource of which each pod takes one."""


def _words(obstacle: NodeObstacle) -> str:
    """As kube-scheduler says it, and by what."""
    match obstacle.rule:
        case PlacementRule.CORDON:
            return "node(s) were unschedulable"
        case PlacementRule.TAINT:
            return f"node(s) had untolerated taint {obstacle.text}"
        case _:
            return f"node(s) didn't match Pod's node affinity/selector: {obstacle.text}"


def used_by(pods: Iterable[WrittenSpec]) -> Amounts:
    """Returns what the pods of one node request together."""
    used: Amounts = {}
    for pod in pods:
        _add(used, other_needs(pod))
    return used


def used_without(
    used: Mapping[str, Amounts], *, node: str, pods: Iterable[WrittenSpec]
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
    _refusals: dict[int, dict[str, str]] = field(default_factory=dict, init=False)
    """Identity of a shape -> node -> why not, until the node changes: thousands of pods ask for the same."""
    _allocatable: dict[str, Amounts] = field(default_factory=dict, init=False)

    def refusals(self, shape: PodShape, names: Iterable[str]) -> dict[str, str]:
        """Returns those of ``names`` to which the pod may not go -> why, in kube-scheduler's words."""
        if self.nodes is None:
            return {}
        known = self._refusals.setdefault(id(shape), {})
        found = {}
        for name in names:
            if name not in known:
                known[name] = self._refusal(shape, self.nodes.get(name))
            if known[name]:
                found[name] = known[name]
        return found

    def _refusal(self, shape: PodShape, node: KubeNode | None) -> str:
        if node is None:
            return "node(s) that are no nodes of the cluster any more"
        first = next(obstacles(shape.written, node), None)
        return _words(first) if first else self._lack(shape, node)

    def take(self, shape: PodShape, node: str) -> None:
        _add(self._taken.setdefault(node, {}), shape.other_needs)
        for known in self._refusals.values():
            known.pop(node, None)

    def _lack(self, shape: PodShape, node: KubeNode) -> str:
        """Source: ``fitsRequest`` of kube-scheduler's ``NodeResourcesFit``."""
        allocatable = self._allocatable_of(node)
        used, taken = self.used.get(node.name, {}), self._taken.get(node.name, {})
        for name, amount in {PODS: Fraction(1), **shape.other_needs}.items():
            if not amount:
                continue  # also where pods that count with nodes alone have more than there is
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
