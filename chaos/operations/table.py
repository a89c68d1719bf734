"""All kinds, family by family."""

from collections.abc import Sequence

from chaos.operation import Kind
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
