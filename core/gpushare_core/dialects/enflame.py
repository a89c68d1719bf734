"""Enflame's GCUShare: units of memory on one card, whose index its annotations carry.

Source: the documents of GCUShare.
"""

from collections.abc import Mapping

from gpushare_core.books.allocation import Allocation
from gpushare_core.dialects.codec import Codec, card_before
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import CardPlace
from gpushare_core.dialects.legacy import LegacyAllocation, read_number
from gpushare_core.placement.requests import ResourceClass

INDEX = "enflame.com/gcu-device-id"
CARD_UNITS = "enflame.com/gcu-device-memory"
POD_UNITS = "enflame.com/gcu-device-memory-request"
ASSIGNED = "enflame.com/gcu-device-assigned"
ASSIGNED_AT = "enflame.com/gcu-device-assign-time"


class EnflameCodec(Codec):
    bind_keys = (INDEX, CARD_UNITS, POD_UNITS, ASSIGNED, ASSIGNED_AT)
    assignment_keys = (ASSIGNED, ASSIGNED_AT)

    def bind_annotations(
        self, allocation: Allocation, cards: Mapping[str, CardPlace], at: int, /
    ) -> dict[str, str]:
        if allocation.resource is not ResourceClass.MEMORY:
            return {}
        ((uuid, units),) = allocation.held().items()
        return {
            INDEX: str(cards[uuid].index),
            CARD_UNITS: str(cards[uuid].units),
            POD_UNITS: str(units),
            ASSIGNED: "false",
            ASSIGNED_AT: str(at),
        }

    def assignment_annotations(self, resource: ResourceClass, at: int, /) -> dict[str, str]:
        return {ASSIGNED: "true", ASSIGNED_AT: str(at)} if resource is ResourceClass.MEMORY else {}

    def read_legacy(self, annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        if INDEX not in annotations:
            return None
        index, units = read_number(annotations, INDEX), read_number(annotations, POD_UNITS)
        return LegacyAllocation(cards={index: units}, assigned=annotations.get(ASSIGNED) == "true")

    def card_of(self, device_id: str, /) -> str | None:
        return card_before(device_id, "-_-")


ENFLAME = Dialect(
    name="enflame.com",
    memory_resource="enflame.com/gcu-memory",
    count_resource="enflame.com/gcu-count",
    node_labels={"enflame.com/gcushare": "true"},
    inspect_path="/gcushare-scheduler/inspect",
    version_path="/version",
    codec=EnflameCodec(),
    card_variables=("GPUSHARE_CARD",),
)
