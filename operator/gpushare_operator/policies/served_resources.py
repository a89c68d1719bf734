"""The extended resources that nodes serve: pods ask for them, and schedulers ask the extender about them."""

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_operator.cluster.snapshot import ClusterSnapshot

DIALECT_RESOURCES = frozenset(name for name in RESOURCES if name.partition("/")[0] in DIALECTS)
"""Names that belong to one dialect alone. Others, such as ``nvidia.com/gpu``, are offered by other plugins,
too."""


def served_classes(mode: str) -> frozenset[ResourceClass]:
    """Returns the classes that a node in ``mode`` offers through its kubelet."""
    return frozenset({MODES[mode].resource}) if mode in MODES else frozenset(ResourceClass)


def served_resources(snapshot: ClusterSnapshot) -> frozenset[str]:
    """Returns the extended resources of the nodes that share their cards, or are about to."""
    return frozenset(
        name
        for dialect, mode in snapshot.traits.dialects
        if dialect in DIALECTS
        for name, resource in DIALECTS[dialect].resources.items()
        if resource in served_classes(mode)
    )


def managed_resources(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Returns the extended resources for which schedulers are to ask the extender.

    1. All names that belong to a dialect in use alone, so that a change of mode edits no scheduler.
    2. Names that others use, too, such as ``nvidia.com/gpu``, only if a node serves them: else the pods of
       others would come to the extender.
    """
    names = (
        name
        for dialect, mode in _in_use(snapshot)
        for name, resource in dialect.resources.items()
        if name in DIALECT_RESOURCES or resource in served_classes(mode)
    )
    return tuple(dict.fromkeys(names)) or tuple(GPUSHARE.resources)


def ignored_resources(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Returns the resources that pods may ask for in a dialect in use although no node offers them."""
    return tuple(
        dict.fromkeys(name for dialect, _ in _in_use(snapshot) for name in dialect.ignored_resources)
    )


def _in_use(snapshot: ClusterSnapshot) -> list[tuple[Dialect, str]]:
    """Returns the dialects and modes that nodes have and are to have, in a fixed order."""
    order = list(DIALECTS)
    known = sorted((order.index(name), mode) for name, mode in snapshot.traits.dialects if name in DIALECTS)
    return [(DIALECTS[order[position]], mode) for position, mode in known]
