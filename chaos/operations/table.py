"""All kinds, family by family."""

from collections.abc import Sequence

from chaos.operation import Kind
from chaos.operations import (
    api_faults,
    cards,
    controllers,
    disks,
    forgeries,
    kubelets,
    machines,
    pods,
    programs,
)

KINDS: Sequence[Kind] = (
    *pods.KINDS,
    *forgeries.KINDS,
    *controllers.KINDS,
    *programs.KINDS,
    *kubelets.KINDS,
    *machines.KINDS,
    *cards.KINDS,
    *disks.KINDS,
    *api_faults.KINDS,
)
