"""Whose names are ours: on one node, and for the schedulers of the whole cluster.

A dialect's names are those of another system, which may run beside us: only what is recorded on a node as
ours is touched there.
"""

from collections.abc import Iterator

from gpushare_core.api.enums import Mode
from gpushare_core.api.names import DIALECT_LABEL, UNIT_CHANGE_BLOCKED
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.modes import MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_operator.cluster.objects import NodeObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.policy_problems import is_served

REMEMBERED = frozenset(name for name in RESOURCES if name.partition("/")[0] in DIALECTS)
"""What kubelets write back of our plugins, but for names that belong to no dialect alone, such as
``nvidia.com/gpu``: the plugins of others offer those everywhere."""


def recorded_dialect(node: NodeObject) -> Dialect:
    """Returns the dialect whose names on ``node`` are ours."""
    return DIALECTS.get(node.labels.get(DIALECT_LABEL, ""), GPUSHARE)


def names_of(dialect: Dialect) -> frozenset[str]:
    """Returns the extended resources that nodes show in ``dialect``."""
    return frozenset({*dialect.resources, dialect.count_resource} - {""})


def own_names(node: NodeObject) -> tuple[str, ...]:
    """Returns what ``node`` shows and is recorded as ours."""
    ours = names_of(recorded_dialect(node))
    return tuple(name for name in node.offered if name in ours)


def dialect_in_force(node: NodeObject, share: ShareNodeObject | None, desired: str) -> Dialect:
    """Returns the dialect that ``node`` speaks: pods that hold units may be in the way of ``desired``."""
    if DIALECT_LABEL in node.labels and not is_settled(share):
        return recorded_dialect(node)
    return DIALECTS[desired]


def is_settled(share: ShareNodeObject | None) -> bool:
    """Returns whether the plugin has put in force what is asked of it."""
    if share is None or share.observed_generation != share.generation:
        return False
    blocked = share.conditions.get(UNIT_CHANGE_BLOCKED)
    return blocked is None or blocked.status != "True"


def stale_names(node: NodeObject, dialect: Dialect) -> tuple[str, ...]:
    """Returns what ``node`` shows of its recorded dialect and would not show in ``dialect``."""
    kept = names_of(dialect)
    return tuple(name for name in own_names(node) if name not in kept)


def shows_counts(node: NodeObject, names: tuple[str, ...]) -> bool:
    """Returns whether any of ``names`` may be a number that only the operator can take out again."""
    return any(name in node.counts for name in names)


def forgotten_names(snapshot: Snapshot, node: NodeObject) -> tuple[str, ...]:
    """Returns what the kubelet of ``node`` may have written as the last thing before it forgot our plugin."""
    zeros = node.zeros & REMEMBERED
    if zeros and is_ours(snapshot, node):
        zeros -= names_of(recorded_dialect(node))
    return tuple(sorted(zeros))


def is_ours(snapshot: Snapshot, node: NodeObject) -> bool:
    """Returns whether anything says that ``node`` shares its cards, or has done so until now."""
    return is_marked(node) or bool(snapshot.policies_on(node.name))


def is_marked(node: NodeObject) -> bool:
    """Returns whether ``node`` has labels of ours that outlast those of its policy."""
    return bool(node.own_labels) or not LASTING_LABELS.isdisjoint(node.labels)


def served_classes(mode: str) -> frozenset[ResourceClass]:
    """Returns the classes that a node in ``mode`` offers through its kubelet."""
    return frozenset({MODES[mode].resource}) if mode in MODES else frozenset(ResourceClass)
