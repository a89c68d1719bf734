"""Enflame's GCUShare: units of memory on one card, whose index its annotations carry.

Source: the documents of GCUShare.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from gpushare_core.dialects.codec import IndexCodec
from gpushare_core.dialects.dialect import CARD_VARIABLE, Dialect
from gpushare_core.dialects.inspection import InspectedNode
from gpushare_core.text.json_object import Json

INDEX = "enflame.com/gcu-device-id"
CARD_UNITS = "enflame.com/gcu-device-memory"
POD_UNITS = "enflame.com/gcu-device-memory-request"
ASSIGNED = "enflame.com/gcu-device-assigned"
ASSIGNED_AT = "enflame.com/gcu-device-assign-time"

_DEVICE_NODE = re.compile("/dev/gcu([0-9]{1,4})")


class EnflameCodec(IndexCodec):
    bind_keys = (INDEX, CARD_UNITS, POD_UNITS, ASSIGNED, ASSIGNED_AT)
    assignment_keys = (ASSIGNED, ASSIGNED_AT)
    index, pod_units, card_units = INDEX, POD_UNITS, CARD_UNITS
    assigned, assigned_at = ASSIGNED, ASSIGNED_AT

    def stored_card(self, _variables: Mapping[str, str], device_nodes: Collection[str], /) -> int | None:
        """The container sees its card as ``/dev/gcuN``."""
        found = [match for path in device_nodes if (match := _DEVICE_NODE.fullmatch(path))]
        return int(found[0][1]) if len(found) == 1 else None

    def inspection(self, nodes: Sequence[InspectedNode], error: str, /) -> Json:
        return {"nodes": [_node(node) for node in nodes], **({"error": error} if error else {})}


def _node(node: InspectedNode) -> Json:
    devices = [
        {
            "id": card.index,
            **_amounts(card.units, card.allocated),
            "pods": [
                {
                    "name": pod.name,
                    "namespace": pod.namespace,
                    "uid": pod.uid,
                    "createTime": pod.created,
                    "usedGCU": pod.units,
                }
                for pod in card.pods
            ],
        }
        for card in node.cards
    ]
    return {"name": node.name, **_amounts(node.units, node.allocated), "devices": devices}


def _amounts(total: int, used: int) -> dict[str, int]:
    return {"totalGCU": total, "usedGCU": used, "availableGCU": total - used}


ENFLAME = Dialect(
    name="enflame.com",
    memory_resource="enflame.com/gcu-memory",
    count_resource="enflame.com/gcu-count",
    node_labels={"enflame.com/gcushare": "true"},
    inspect_path="/gcushare-scheduler/inspect",
    version_path="/version",
    codec=EnflameCodec(),
    card_variables=(CARD_VARIABLE,),
)
