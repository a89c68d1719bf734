"""Aliyun's gpushare: units of memory on one card, whose index its annotations and variables carry.

Source: AliyunContainerService/gpushare-scheduler-extender and gpushare-device-plugin.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from gpushare_core.dialects.codec import IndexCodec
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import ContainerGrant
from gpushare_core.dialects.inspection import InspectedNode
from gpushare_core.dialects.legacy import LegacyAllocation, MalformedAnnotationsError
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import is_number

INDEX = "ALIYUN_COM_GPU_MEM_IDX"
POD_UNITS = "ALIYUN_COM_GPU_MEM_POD"
CONTAINER_UNITS = "ALIYUN_COM_GPU_MEM_CONTAINER"
CARD_UNITS = "ALIYUN_COM_GPU_MEM_DEV"
"""Three of them are annotations and variables as well."""
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUMED_AT = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
NO_CARD = "-1"
"""Instead of an index: the plugin found no pod for the container, which then has no card and fails."""
CONTAINERS = "scheduler.framework.gpushare.allocation"
"""JSON: container -> card index -> units. Neither Aliyun's extender nor its plugin writes it. Where it
differs from ``INDEX``, the plugin followed ``INDEX``."""

_CONTAINERS = msgspec.json.Decoder(dict[str, dict[str, int]])


class AliyunCodec(IndexCodec):
    bind_keys = (INDEX, POD_UNITS, CARD_UNITS, ASSIGNED, ASSUMED_AT)
    assignment_keys = (ASSIGNED, ASSUMED_AT)
    index, pod_units, card_units = INDEX, POD_UNITS, CARD_UNITS
    assigned, assigned_at = ASSIGNED, ASSUMED_AT
    read_keys = (CONTAINERS,)

    def variables(self, grant: ContainerGrant, /) -> dict[str, str]:
        if grant.resource is not ResourceClass.MEMORY or len(grant.cards) != 1:
            return {}
        (card,) = grant.cards
        return {
            INDEX: str(card.index),
            POD_UNITS: str(grant.pod_units),
            CONTAINER_UNITS: str(card.units),
            CARD_UNITS: str(card.card_units),
        }

    def read_legacy(self, annotations: Mapping[str, str], /) -> LegacyAllocation | None:
        if INDEX in annotations or CONTAINERS not in annotations:
            return super().read_legacy(annotations)
        containers = _read_containers(annotations[CONTAINERS])
        assigned = annotations.get(ASSIGNED) == "true"
        return LegacyAllocation(cards=_sum(containers), containers=containers, assigned=assigned)

    def stored_card(self, variables: Mapping[str, str], _device_nodes: Collection[str], /) -> int | None:
        index = variables.get(INDEX, "")
        return int(index) if is_number(index) or index == NO_CARD else None

    def unit_size(self, variables: Mapping[str, str], _devices: int, /) -> int:
        """The units are GiB or MiB: no card has 1024 GiB, and none has less than 1024 MiB."""
        units = variables.get(CARD_UNITS, "")
        if not is_number(units) or not int(units):
            return 0
        return MIB if int(units) >= 1024 else 1024 * MIB

    def inspection(self, nodes: Sequence[InspectedNode], error: str, /) -> Json:
        return {"nodes": [_node(node) for node in nodes], **({"error": error} if error else {})}


def _node(node: InspectedNode) -> Json:
    return {
        "name": node.name,
        "totalGPU": node.units,
        "usedGPU": node.allocated,
        "devs": [
            {
                "id": card.index,
                "totalGPU": card.units,
                "usedGPU": card.allocated,
                "pods": [
                    {"name": pod.name, "namespace": pod.namespace, "usedGPU": pod.units} for pod in card.pods
                ],
            }
            for card in node.cards
        ],
    }


def _read_containers(text: str) -> dict[str, dict[int, int]]:
    try:
        decoded = _CONTAINERS.decode(text)
    except UNREADABLE_JSON as error:
        raise MalformedAnnotationsError(f"{CONTAINERS}: {error}") from error
    if not all(
        is_number(index) and units >= 0 for shares in decoded.values() for index, units in shares.items()
    ):
        raise MalformedAnnotationsError(f"{CONTAINERS} has an index or an amount that is none")
    return {name: {int(index): units for index, units in shares.items()} for name, shares in decoded.items()}


def _sum(containers: Mapping[str, Mapping[int, int]]) -> dict[int, int]:
    cards: dict[int, int] = {}
    for shares in containers.values():
        for index, units in shares.items():
            cards[index] = cards.get(index, 0) + units
    return cards


ALIYUN = Dialect(
    name="aliyun.com",
    memory_resource="aliyun.com/gpu-mem",
    count_resource="aliyun.com/gpu-count",
    node_labels={"gpushare": "true"},
    inspect_path="/gpushare-scheduler/inspect",
    version_path="/version",
    codec=AliyunCodec(),
)
