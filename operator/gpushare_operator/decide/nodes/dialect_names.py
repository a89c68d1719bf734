"""Which of the extended resources that a node shows are ours.

A dialect's names are those of another system, which may run beside us: only what is recorded on a node as
ours is touched there.
"""

from gpushare_core.api.names import DIALECT_LABEL, MODE_LABEL, UNIT_CHANGE_BLOCKED
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES, SHARED_RESOURCES
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, ShareNodeObject
from gpushare_operator.policies.served_resources import DIALECT_RESOURCES, served_classes


def recorded_dialect(node: NodeObject) -> Dialect:
    """Returns the dialect whose names on ``node`` are ours."""
    return DIALECTS.get(node.labels.get(DIALECT_LABEL, ""), GPUSHARE)


_NAMES = {
    dialect.name: frozenset({*dialect.resources, dialect.count_resource} - {""})
    for dialect in DIALECTS.values()
}


def names_of(dialect: Dialect) -> frozenset[str]:
    return _NAMES[dialect.name]


def own_names(node: NodeObject) -> tuple[str, ...]:
    """Returns what ``node`` shows and is recorded as ours."""
    return _shown(node, names_of(recorded_dialect(node)))


def shows_units(node: NodeObject, dialect: Dialect) -> bool:
    """Returns whether the kubelet shows units in ``dialect``, as it does some seconds after a plugin has
    registered them."""
    return not node.zeros.issuperset(_shown(node, frozenset(dialect.resources)))


def _shown(node: NodeObject, names: frozenset[str]) -> tuple[str, ...]:
    """Returns those of ``names`` that ``node`` shows, without those of another plugin: names that several
    systems use, in a mode in which our plugin does not offer them."""
    served = served_classes(node.labels.get(MODE_LABEL, ""))
    others = {name for name in SHARED_RESOURCES - node.zeros if RESOURCES[name] not in served}
    return tuple(name for name in node.offered if name in names - others)


def dialect_in_force(node: NodeObject, share: ShareNodeObject | None, desired: str, mode: str) -> Dialect:
    """Returns the dialect in force on ``node``, which stays the former one while pods hold its units."""
    if share and share.dialect in DIALECTS:
        return DIALECTS[share.dialect]
    if DIALECT_LABEL in node.labels and not is_settled(share, desired, mode):
        return recorded_dialect(node)
    return DIALECTS.get(desired) or recorded_dialect(node)


def is_settled(share: ShareNodeObject | None, dialect: str, mode: str) -> bool:
    if share is None or share.observed_generation != share.generation:
        return False
    blocked = share.conditions.get(UNIT_CHANGE_BLOCKED)
    asked = (share.spec.get("dialect", GPUSHARE.name), share.spec.get("mode"))
    return asked == (dialect, mode) and (blocked is None or blocked.status != "True")


def stale_names(node: NodeObject, dialect: Dialect) -> tuple[str, ...]:
    """Returns the names that ``node`` shows in its recorded dialect and would not show in ``dialect``."""
    return _shown(node, names_of(recorded_dialect(node)) - names_of(dialect))


def shows_counts(node: NodeObject, names: tuple[str, ...]) -> bool:
    """Returns whether any of ``names`` may be a number that only the operator can take out again."""
    return any(name in node.counts for name in names)


def names_left_by_kubelet(state: ObservedState) -> tuple[str, ...]:
    """Returns the names with zeros that the kubelet may have written last, before it forgot our plugin."""
    node = state.node
    zeros = node.zeros & DIALECT_RESOURCES if node else frozenset()
    if node and zeros and is_ours(state, node):
        zeros -= names_of(recorded_dialect(node))
    return tuple(sorted(zeros))


def is_ours(state: ObservedState, node: NodeObject) -> bool:
    """Returns whether ``node`` shares its cards, or has done so until now."""
    return bool(lasting_labels(node) or state.policies)


def lasting_labels(node: NodeObject) -> list[str]:
    """Returns the labels of ``node`` that are ours and may outlast that of its policy."""
    ours = {MODE_LABEL, DIALECT_LABEL} & node.labels.keys()
    return sorted(ours | node.own_labels)
