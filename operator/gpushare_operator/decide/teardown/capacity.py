"""Resources that stay in the status of a node when its plugin is gone.

After a plugin has stopped the kubelet writes the node's status from memory for five minutes, every few
seconds: the full capacity and nothing allocatable, or zeros if the plugin withdrew its list or the kubelet
was restarted. Then it forgets the resource; the last value that it writes is zero. (Source:
``endpointStopGracePeriod`` and ``GetCapacity`` of its device manager, and ``MachineInfo`` of its node
status.) So the operator takes capacity out twice: at the beginning, and after the kubelet has forgotten it;
in between the kubelet would write it back each time. Both zeros look alike, so ``retry_backoff`` waits.

Numbers of cards, which some dialects show besides, are the operator's own: the kubelet neither refreshes nor
removes them. So the label that records the dialect goes only after them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpushare_operator.actions import Action, CapacityLeft, ClearCapacity, LabelNode
from gpushare_operator.backends.teardown_step import Leftover, Situation, leftovers
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.dialect_names import (
    lasting_labels,
    names_left_by_kubelet,
    own_names,
    shows_counts,
)
from gpushare_operator.policies.wording import DEFECT


@dataclass(frozen=True, slots=True)
class _LeftCapacity:
    node: NodeObject
    is_leaving: bool
    """Whether the node shared its cards, and no plugin offers anything there any more."""
    left_by_kubelet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapacityFinder:
    """Finds what is left in the status of a node."""

    def __call__(self, state: ObservedState) -> Entry[_LeftCapacity]:
        if state.node is None:
            return NOTHING
        is_leaving = not state.policies and bool(lasting_labels(state.node))
        names = names_left_by_kubelet(state)
        return Entry(_LeftCapacity(state.node, is_leaving, names)) if is_leaving or names else NOTHING


def capacity(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    leaving = [left.node for left in _left(snapshot) if left.is_leaving]
    return [
        # Nobody knows whether anything is left on these nodes.
        *leftovers(f"{DEFECT}, about", snapshot.index(CapacityFinder()).defects),
        *leftovers("our resources in the status of", (node.name for node in leaving if own_names(node))),
        *leftovers("labels on", (node.name for node in leaving if not own_names(node))),
    ]


def clear_capacity(situation: Situation) -> Iterator[Action]:
    all_left = _left(situation.snapshot)
    leaving = [left.node for left in all_left if left.is_leaving]
    for node in leaving:
        if names := own_names(node):
            yield ClearCapacity(node.name, node.uid, names)
    for left in all_left:
        if left.left_by_kubelet:
            node = left.node
            yield ClearCapacity(node.name, node.uid, left.left_by_kubelet, CapacityLeft.BY_KUBELET)
    for node in leaving:
        if not shows_counts(node, own_names(node)):
            yield LabelNode(node.name, node.uid, dict.fromkeys(lasting_labels(node)))


def _left(snapshot: ClusterSnapshot) -> list[_LeftCapacity]:
    return [left for _, left in sorted(snapshot.index(CapacityFinder()).results.items())]
