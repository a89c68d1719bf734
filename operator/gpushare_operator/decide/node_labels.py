"""What nodes show of their policy and of the dialect that they speak: labels, and numbers of cards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpushare_core.api.policy import PolicySpec
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_operator.cluster.labels import DIALECT_LABELS
from gpushare_operator.cluster.objects import NodeObject, PolicyObject, ShareNodeObject
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
    """One node of a policy, and what it is to show."""

    node: NodeObject
    share: ShareNodeObject | None
    mode: str
    dialect: Dialect
    """The one in force."""

    @property
    def is_settled(self) -> bool:
        """Whether the plugin offers what is asked for, by the names that are recorded on the node."""
        is_recorded = recorded_dialect(self.node) is self.dialect
        return is_recorded and is_settled(self.share, self.dialect.name, self.mode)


def desired_nodes(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> list[DesiredNode]:
    """Returns the nodes that share; those of which nobody knows what is asked now stay as they are."""
    nodes = [_enabled(snapshot, policy.spec, *each) for each in assignment.enabled.items() if policy.spec]
    return [*nodes, *(_kept(snapshot, name) for name in sorted(assignment.kept))]


def _enabled(snapshot: Snapshot, spec: PolicySpec, name: str, rule: int) -> DesiredNode:
    return _desired(snapshot.nodes[name], snapshot.share_nodes.get(name), spec.dialect, spec.nodes[rule].mode)


def _kept(snapshot: Snapshot, name: str) -> DesiredNode:
    share = snapshot.share_nodes[name]
    dialect, mode = share.spec.get("dialect", GPUSHARE.name), share.spec.get("mode", "")
    return _desired(snapshot.nodes[name], share, str(dialect), str(mode))


def _desired(node: NodeObject, share: ShareNodeObject | None, dialect: str, mode: str) -> DesiredNode:
    return DesiredNode(node, share, mode, dialect_in_force(node, share, dialect, mode))


def label_nodes(policy: str, desired: Iterable[DesiredNode]) -> Iterator[LabelNode]:
    """Yields labels after all GPUShareNodes: the applier makes calls of one kind at the same time."""
    labels: dict[tuple[str, str], Mapping[str, str]] = {}
    for each in desired:
        key = (each.mode, each.dialect.name)
        if key not in labels:  # there can be thousands of nodes
            labels[key] = node_labels(policy, each.mode, each.dialect)
        if not shows_counts(each.node, stale_names(each.node, each.dialect)):
            yield from _change_labels(each, labels[key])


def clear_former_dialects(desired: Iterable[DesiredNode]) -> Iterator[ClearCapacity]:
    """Yields what a node shows in a dialect that it spoke before; its label says so until that is done."""
    for each in desired:
        if names := stale_names(each.node, each.dialect):
            yield ClearCapacity(each.node.name, each.node.uid, names)


def show_counts(desired: Iterable[DesiredNode]) -> Iterator[SetCounts]:
    """Yields the numbers of cards that a dialect shows beside what the kubelet does."""
    for each in desired:
        if each.dialect.count_resource and each.share and each.is_settled:
            cards, shown = each.share.cards, each.node.counts
            names = each.dialect.counts(served_classes(each.mode))
            wrong = {name: cards for name in names if not _is_shown(shown, name, cards)}
            if wrong:
                yield SetCounts(each.node.name, each.node.uid, wrong)


def _is_shown(counts: Mapping[str, tuple[str, str]], name: str, cards: int) -> bool:
    return counts.get(name, ("0", "0")) == (str(cards), str(cards))


def _change_labels(each: DesiredNode, desired: Mapping[str, str]) -> Iterator[LabelNode]:
    """Yields what is missing, and what of a dialect was ours and is not desired any more.

    A label by a dialect's name that somebody else has set is theirs, whatever its value.
    """
    node = each.node
    theirs = (DIALECT_LABELS & node.labels.keys()) - node.own_labels
    changes: dict[str, str | None] = {
        key: value for key, value in desired.items() if key not in theirs and node.labels.get(key) != value
    }
    changes |= dict.fromkeys(sorted(node.own_labels - desired.keys()))
    annotations = _change_annotations(each)
    if changes or annotations:
        yield LabelNode(node.name, node.uid, changes, annotations)


def _change_annotations(each: DesiredNode) -> dict[str, str | None]:
    """Returns what tells the dialect's own scheduler which cards take no new pods."""
    own, closed = each.dialect.closed_cards_annotation, each.share.closed_cards if each.share else ()
    desired = {own: ",".join(map(str, closed))} if own and closed else {}
    changes: dict[str, str | None] = {
        key: value for key, value in desired.items() if each.node.closed_cards.get(key) != value
    }
    ours = {own, recorded_dialect(each.node).closed_cards_annotation}
    return changes | dict.fromkeys(sorted((ours & each.node.closed_cards.keys()) - desired.keys()))
