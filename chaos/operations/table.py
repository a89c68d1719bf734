"""All kinds, family by family."""

from collections.abc import Sequence

from chaos.operation import Kind
from chaos.operations import cards, disks, kubelets, machines, pods, programs

KINDS: Sequence[Kind] = (
    *pods.KINDS,
    *programs.KINDS,
    *kubelets.KINDS,
    *machines.KINDS,
    *cards.KINDS,
    *disks.KINDS,
)
