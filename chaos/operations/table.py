"""All kinds, family by family."""

from collections.abc import Sequence

from chaos.operation import Kind, Operation
from chaos.operations import (
    api_faults,
    cards,
    controllers,
    disks,
    forgeries,
    hostctl_runs,
    kubelets,
    machines,
    manifests,
    pods,
    policies,
    programs,
)
from gpushare_core.api.enums import Engine

KINDS: Sequence[Kind] = (
    *pods.KINDS,
    *forgeries.KINDS,
    *controllers.KINDS,
    *programs.KINDS,
    *kubelets.KINDS,
    *machines.KINDS,
    *disks.KINDS,
    *cards.KINDS,
    *api_faults.KINDS,
    *policies.KINDS,
    *manifests.KINDS,
    *hostctl_runs.KINDS,
)
"""Those with the extender beside the cluster's own kube-scheduler."""

_PLUGIN_KINDS: Sequence[Kind] = (*programs.PLUGIN_KINDS, *policies.PLUGIN_KINDS)
_NOT_WITH_PLUGIN: frozenset[type[Operation]] = frozenset(
    {
        *programs.NEED_EXTENDER,
        *policies.OF_STATIC_PODS,
        *(kind.operation for kind in (*manifests.KINDS, *hostctl_runs.KINDS)),
    }
)
ALL_KINDS: Sequence[Kind] = (*KINDS, *_PLUGIN_KINDS)


def kinds_of(engine: Engine) -> Sequence[Kind]:
    """Returns the kinds that can be done where ``engine`` places pods."""
    if engine is Engine.EXTENDER:
        return KINDS
    return tuple(kind for kind in ALL_KINDS if kind.operation not in _NOT_WITH_PLUGIN)
