"""Resources that stay in the status of a node when its plugin is gone.

For five minutes after a plugin has stopped the kubelet writes what it remembers into the node's status,
every few seconds: the full capacity and nothing allocatable, or zeros where the plugin withdrew its list or
the kubelet was restarted. Then it forgets the resource; the last thing that it writes is a zero. (Source:
``endpointStopGracePeriod`` and ``GetCapacity`` of its device manager, and ``MachineInfo`` of its node
status.) So capacity is taken out once at the beginning and once at that end; in between it would be a fight
that nobody wins. Zeros look alike, so time has to tell: ``repetitions`` waits.

Numbers of cards, which dialects show beside, are the operator's own: the kubelet neither refreshes nor
forgets them. So the label that records the dialect goes only when they are gone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpushare_operator.actions import Action, CapacityLeft, ClearCapacity, LabelNode
from gpushare_operator.backends.teardown import Leftover, Situation, leftovers
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.dialect_names import (
    forgotten_names,
    lasting_labels,
    own_names,
    shows_counts,
)
from gpushare_operator.policies.wording import DEFECT


@dataclass(frozen=True, slots=True)
class _Capacity:
    """What is left in the status of a node, and the labels that say so."""

    node: NodeObject
    is_leaving: bool
    """Whether the node was ours, and no plugin offers anything there any more."""
    forgotten: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapacityFinder:
    """Looks for capacity that is left."""

    def __call__(self, state: ObservedState) -> Entry[_Capacity]:
        if state.node is None:
            return NOTHING
        is_leaving = not state.policies and bool(lasting_labels(state.node))
        forgotten = forgotten_names(state)
        is_left = is_leaving or forgotten
        return Entry(_Capacity(state.node, is_leaving, forgotten)) if is_left else NOTHING


def capacity(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    leaving = _leaving_nodes(snapshot)
    return [
        # Of these nobody knows whether anything is left.
        *leftovers(f"{DEFECT}, about", _capacities(snapshot).defects),
        *leftovers("our resources in the status of", (node.name for node in leaving if own_names(node))),
        *leftovers("labels on", (node.name for node in leaving if not own_names(node))),
    ]


def clear_capacity(situation: Situation) -> Iterator[Action]:
    leaving = _leaving_nodes(situation.snapshot)
    for node in leaving:
        if names := own_names(node):
            yield ClearCapacity(node.name, node.uid, names)
    for each in _left(situation.snapshot):
        if each.forgotten:
            node = each.node
            yield ClearCapacity(node.name, node.uid, each.forgotten, CapacityLeft.BY_KUBELET)
    for node in leaving:
        if not shows_counts(node, own_names(node)):
            yield LabelNode(node.name, node.uid, dict.fromkeys(lasting_labels(node)))


def _leaving_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    return [each.node for each in _left(snapshot) if each.is_leaving]


def _left(snapshot: ClusterSnapshot) -> list[_Capacity]:
    return [each for _, each in sorted(_capacities(snapshot).results.items())]


def _capacities(snapshot: ClusterSnapshot) -> NodeIndex[_Capacity]:
    return snapshot.index(CapacityFinder())
