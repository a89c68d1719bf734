"""The pods of the demo and what is read back about them."""

import json
from dataclasses import dataclass
from typing import Any

RESOURCE = "gpushare.io/memory"
SHOW_CARD = "env | grep -E '^(NVIDIA_VISIBLE_DEVICES|GPUSHARE_)' | sort; exec sleep infinity"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod ended up."""

    node: str
    cards: tuple[str, ...]
    """UUIDs."""


def pod(name: str, units: int) -> dict[str, Any]:
    """A pod of one container that prints its card and stays."""
    container = {
        "name": "main",
        "image": "busybox:stable",
        "command": ["sh", "-c", SHOW_CARD],
        "resources": {"limits": {RESOURCE: str(units)}},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def placement(body: dict[str, Any]) -> Placement:
    """Raises ``KeyError`` while the pod is not placed."""
    allocation = json.loads(body["metadata"]["annotations"]["gpushare.io/allocation"])
    return Placement(body["spec"]["nodeName"], tuple(allocation["cards"]))
