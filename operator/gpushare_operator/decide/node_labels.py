"""What nodes show of their policy and of the dialect that they speak: labels, and numbers of cards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_operator.cluster.labels import DIALECT_LABELS
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import ClearCapacity, LabelNode, SetCounts
from gpushare_operator.decide.dialect_names import (
    dialect_in_force,
    is_settled,
    recorded_dialect,
    served_classes,
    shows_counts,
    stale_names,
)
from gpushare_operator.decide.node_assignment import Assignment
from gpushare_operator.desired.share_nodes import node_labels


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """What a node of the policy is to show."""

    dialect: Dialect
    """The one in force."""
    mode: str
    labels: Mapping[str, str]


DesiredNodes: TypeAlias = Mapping[str, DesiredNode]
"""By their names."""


def desired_nodes(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> DesiredNodes:
    asked = {name: _asked(snapshot, policy, assignment, name) for name in assignment.sharing}
    return {name: _desired_node(snapshot, policy.name, name, *of) for name, of in asked.items()}


def _asked(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment, name: str) -> tuple[str, str]:
    """Returns dialect and mode that are asked of a node; what cannot be read now stays as it is."""
    if policy.spec and name in assignment.enabled:
        return policy.spec.dialect, policy.spec.nodes[assignment.enabled[name]].mode
    spec = snapshot.share_nodes[name].spec
    return str(spec.get("dialect", GPUSHARE.name)), str(spec.get("mode", ""))


def _desired_node(snapshot: Snapshot, policy: str, name: str, desired: str, mode: str) -> DesiredNode:
    share = snapshot.share_nodes.get(name)
    dialect = dialect_in_force(snapshot.nodes[name], share, desired, mode)
    return DesiredNode(dialect, mode, node_labels(policy, mode, dialect))


def label_nodes(snapshot: Snapshot, desired: DesiredNodes) -> Iterator[LabelNode]:
    """Yields labels after all GPUShareNodes: the applier makes calls of one kind at the same time."""
    for name, wanted in desired.items():
        node = snapshot.nodes[name]
        if not shows_counts(node, stale_names(node, wanted.dialect)):
            yield from _change_labels(node, wanted.labels)


def clear_former_dialects(snapshot: Snapshot, desired: DesiredNodes) -> Iterator[ClearCapacity]:
    """Yields what a node shows in a dialect that it spoke before; its label says so until that is done."""
    for name, wanted in desired.items():
        node = snapshot.nodes[name]
        if names := stale_names(node, wanted.dialect):
            yield ClearCapacity(name, node.uid, names)


def show_counts(snapshot: Snapshot, desired: DesiredNodes) -> Iterator[SetCounts]:
    for name, wanted in desired.items():
        node, share = snapshot.nodes[name], snapshot.share_nodes.get(name)
        is_recorded = recorded_dialect(node) is wanted.dialect
        if share and is_recorded and is_settled(share, wanted.dialect.name, wanted.mode):
            counts = dict.fromkeys(wanted.dialect.counts(served_classes(wanted.mode)), share.cards)
            wrong = {key: count for key, count in counts.items() if not _is_shown(node, key, count)}
            if wrong:
                yield SetCounts(name, node.uid, wrong)


def _is_shown(node: NodeObject, name: str, count: int) -> bool:
    return node.counts.get(name, ("0", "0")) == (str(count), str(count))


def _change_labels(node: NodeObject, desired: Mapping[str, str]) -> Iterator[LabelNode]:
    """Yields what is missing, and what of a dialect was ours and is not desired any more.

    A label by a dialect's name that somebody else has set is theirs, whatever its value.
    """
    theirs = (DIALECT_LABELS & node.labels.keys()) - node.own_labels
    changes: dict[str, str | None] = {
        key: value for key, value in desired.items() if key not in theirs and node.labels.get(key) != value
    }
    changes |= dict.fromkeys(sorted(node.own_labels - desired.keys()))
    if changes:
        yield LabelNode(node.name, node.uid, changes)
