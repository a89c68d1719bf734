"""What nodes show of their policy and their dialect: labels, annotations and numbers of cards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpushare_core.api.enums import UnitChange
from gpushare_core.api.names import UNIT_TOO_FINE
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.modes.table import unit_to_come
from gpushare_core.placement.units import UnitFields
from gpushare_operator.actions import ClearCapacity, LabelNode, SetCounts
from gpushare_operator.cluster.labels import DIALECT_LABELS
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, ShareNodeObject
from gpushare_operator.decide.nodes.dialect_names import (
    dialect_in_force,
    is_settled,
    recorded_dialect,
    shows_counts,
    stale_names,
)
from gpushare_operator.decide.nodes.node_assignment import Claimants, NodeAssignment
from gpushare_operator.desired.share_nodes import node_labels
from gpushare_operator.policies.served_resources import served_classes


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """One node of a policy, and the mode and dialect that it is to show."""

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


def desired_node(
    state: ObservedState, claimants: Claimants, assignment: NodeAssignment
) -> DesiredNode | None:
    """Returns None for a node that does not share its cards. One whose policy cannot be read stays as its
    GPUShareNode says."""
    spec, share = claimants.policy.spec, state.share
    if state.node is None:
        return None
    if assignment.rule is not None and spec:
        return _desired(state.node, share, spec.dialect, spec.nodes[assignment.rule].mode)
    if assignment.is_kept and share:
        dialect, mode = share.spec.get("dialect", GPUSHARE.name), share.spec.get("mode", "")
        return _desired(state.node, share, str(dialect), str(mode))
    return None


def _desired(node: NodeObject, share: ShareNodeObject | None, dialect: str, mode: str) -> DesiredNode:
    return DesiredNode(node, share, mode, dialect_in_force(node, share, dialect, mode))


def label_node(policy: str, desired: DesiredNode) -> Iterator[LabelNode]:
    if not shows_counts(desired.node, stale_names(desired.node, desired.dialect)):
        yield from _change_labels(desired, node_labels(policy, desired.mode, desired.dialect))


def clear_former_dialect(desired: DesiredNode) -> Iterator[ClearCapacity]:
    """Yields the removal of names of the former dialect; the label keeps the former dialect until then."""
    if names := stale_names(desired.node, desired.dialect):
        yield ClearCapacity(desired.node.name, desired.node.uid, names)


def show_counts(desired: DesiredNode) -> Iterator[SetCounts]:
    """Yields the numbers of cards that a dialect shows besides the kubelet's resources."""
    if desired.dialect.count_resource and desired.share and desired.is_settled:
        cards, shown = desired.share.cards, desired.node.counts
        names = desired.dialect.counts(served_classes(desired.mode))
        right = (str(cards), str(cards))
        wrong = {name: cards for name in names if shown.get(name, ("0", "0")) != right}
        if wrong:
            yield SetCounts(desired.node.name, desired.node.uid, wrong)


def _change_labels(desired: DesiredNode, labels: Mapping[str, str]) -> Iterator[LabelNode]:
    """Yields the labels that are missing, and takes off our labels of a former dialect.

    A label of a dialect that somebody else has set stays, whatever its value.
    """
    node = desired.node
    theirs = (DIALECT_LABELS & node.labels.keys()) - node.own_labels
    changes: dict[str, str | None] = {
        key: value for key, value in labels.items() if key not in theirs and node.labels.get(key) != value
    }
    changes |= dict.fromkeys(sorted(node.own_labels - labels.keys()))
    annotations = _change_annotations(desired)
    if changes or annotations:
        yield LabelNode(node.name, node.uid, changes, annotations)


def _closed_cards(share: ShareNodeObject) -> tuple[int, ...]:
    """Returns the indices of the cards that take no new pods: all of them where another unit is to come."""
    spec, refused = share.spec, share.conditions.get(UNIT_TOO_FINE)
    if spec.get("unitChange") == UnitChange.KEEP or (refused and refused.status == "True"):
        return share.closed_cards
    fields = UnitFields(str(spec.get("memoryUnit", "")), spec.get("slicesPerCard"))
    is_changing = unit_to_come(str(spec.get("mode", "")), fields, share.unit) is not None
    return share.card_indices if is_changing else share.closed_cards


def _change_annotations(desired: DesiredNode) -> dict[str, str | None]:
    """Returns the annotation that tells the dialect's own scheduler which cards take no new pods."""
    node, own = desired.node, desired.dialect.closed_cards_annotation
    closed = _closed_cards(desired.share) if desired.share else ()
    annotations = {own: ",".join(map(str, closed))} if own and closed else {}
    changes: dict[str, str | None] = {
        key: value for key, value in annotations.items() if node.closed_cards.get(key) != value
    }
    ours = {own, recorded_dialect(node).closed_cards_annotation}
    return changes | dict.fromkeys(sorted((ours & node.closed_cards.keys()) - annotations.keys()))
