"""All kinds, family by family."""

from collections.abc import Sequence

from chaos.operation import Kind
from chaos.operations import api_faults, pods

KINDS: Sequence[Kind] = (*pods.KINDS, *api_faults.KINDS)
