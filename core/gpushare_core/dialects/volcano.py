"""Volcano's gpu-memory and gpu-number: annotations have the cards' indexes, the pod's request the amount.

Source: volcano-sh/devices ``pkg/plugin/nvidia`` and volcano's plugin ``deviceshare``.
"""

from collections.abc import Collection, Mapping

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.dialects.codec import Codec, card_before, shares_of_class
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import CardPlace, ContainerGrant
from gpushare_core.dialects.legacy import CardName, LegacyAllocation, MalformedAnnotationsError
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.whole_number import is_number

INDEX = "volcano.sh/gpu-index"
"""``0``, or ``0,1`` for several whole cards."""
PREDICATE_TIME = "volcano.sh/predicate-time"
ASSIGNED = "volcano.sh/gpu-assigned"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
ALLOCATED = "VOLCANO_GPU_ALLOCATED"
"""MiB that the container has."""
TOTALS = ("VOLCANO_GPU_MEMORY_TOTAL", "VOLCANO_GPU_TOTAL")
"""MiB of the whole card: by the name in Volcano's user guide, and by that which its device plugin sets."""

_SERVED = (ResourceClass.MEMORY, ResourceClass.CARD)
_WHOLE_CARD_ID = "GPU-"


class VolcanoCodec(Codec):
    bind_keys = (INDEX, PREDICATE_TIME)
    assignment_keys = (ASSIGNED,)

    def variables(self, grant: ContainerGrant, /) -> dict[str, str]:
        if grant.resource is not ResourceClass.MEMORY or len(grant.cards) != 1:
            return {}
        (card,) = grant.cards
        return {ALLOCATED: str(card.memory // MIB), **dict.fromkeys(TOTALS, str(card.card_memory // MIB))}

    def bind_annotations(
        self, allocation: Allocation, cards: Mapping[str, CardPlace], at: int, /
    ) -> dict[str, str]:
        if allocation.resource not in _SERVED:
            return {}
        indexes = sorted(cards[uuid].index for uuid in shares_of_class(allocation))
        return {INDEX: ",".join(map(str, indexes)), PREDICATE_TIME: str(at)}

    def assignment_annotations(self, resource: ResourceClass, _at: int, /) -> dict[str, str]:
        return {ASSIGNED: "true"} if resource in _SERVED else {}

    def read_legacy(self, annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        if INDEX not in annotations:
            return None
        indexes = annotations[INDEX].split(",")
        if not all(map(is_number, indexes)):
            raise MalformedAnnotationsError(f"{INDEX} is {annotations[INDEX]!r}, not one index or several")
        return LegacyAllocation(
            cards=dict.fromkeys(map(int, indexes)), assigned=annotations.get(ASSIGNED) == "true"
        )

    def card_of(self, device_id: str, /) -> CardName | None:
        """Shared cards are named by their index, whole cards by their UUID."""
        if device_id.startswith(_WHOLE_CARD_ID):
            return device_id
        index = card_before(device_id, "-")
        return int(index) if index and is_number(index) else None

    def stored_card(self, variables: Mapping[str, str], _device_nodes: Collection[str], /) -> int | None:
        """Of a shared card: a whole card is named by the container's device IDs."""
        index = variables.get(VISIBLE, "")
        return int(index) if ALLOCATED in variables and is_number(index) else None

    def unit_size(self, variables: Mapping[str, str], devices: int, /) -> int:
        memory = variables.get(ALLOCATED, "")
        return int(memory) * MIB // devices if is_number(memory) and devices else 0


VOLCANO = Dialect(
    name="volcano.sh",
    memory_resource="volcano.sh/gpu-memory",
    card_resource="volcano.sh/gpu-number",
    count_resource="volcano.sh/gpu-number",
    closed_cards_annotation="volcano.sh/gpu-unhealthy-ids",
    codec=VolcanoCodec(),
)
