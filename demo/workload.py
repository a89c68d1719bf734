"""The pods of the demo and what is read back about them."""

from dataclasses import dataclass

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json

MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource
"""What the pods of the demo ask for."""
SHOW_CARD = "env | grep -E '^(NVIDIA_VISIBLE_DEVICES|GPUSHARE_)' | sort; exec sleep infinity"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod ended up."""

    node: str
    cards: tuple[str, ...]
    """UUIDs."""


def pod(name: str, resource: str, amount: int) -> Json:
    """Returns a pod of one container that prints its cards and stays."""
    container = {
        "name": "main",
        "image": "busybox:stable",
        "command": ["sh", "-c", SHOW_CARD],
        "resources": {"limits": {resource: str(amount)}},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def placement(body: Json) -> Placement:
    """Returns where the pod is. Raises ``KeyError`` while it is not placed."""
    metadata = body["metadata"]
    text = metadata["annotations"][GPUSHARE.allocation_annotation]
    allocation = decode_allocation(text, uid=metadata["uid"])
    return Placement(body["spec"]["nodeName"], tuple(allocation.held()))
