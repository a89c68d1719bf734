"""One wish to bind a pod: what is sent for it, and what the pod's state says of its success. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from urllib.parse import quote

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.books.allocation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    encode_allocation,
)
from gpushare_extender.decide.requests import PodNeeds
from gpushare_extender.http.wire import BindArgs
from gpushare_extender.ledger.holder import Holding

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Order:
    """Bind this pod to this node with these ``annotations``."""

    args: BindArgs
    annotations: dict[str, str]

    @property
    def pod_path(self) -> str:
        return pod_path(self.args.pod_namespace, self.args.pod_name)

    @property
    def pod(self) -> str:
        return f"{self.args.pod_namespace}/{self.args.pod_name}"

    def binding(self) -> dict[str, Any]:
        """Source: ``v1.Binding``. The API server refuses it for a pod of another UID, and moves the
        annotations to the pod in the write that sets its node."""
        args = self.args
        metadata = {"name": args.pod_name, "namespace": args.pod_namespace, "uid": args.pod_uid}
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {**metadata, "annotations": self.annotations} if self.annotations else metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": args.node},
        }


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def allocation_of(holding: Holding, needs: PodNeeds, *, unit: str, now: datetime) -> Allocation:
    """The durable form of ``holding``, a share of one card, spread over the containers that asked."""
    card, _ = holding.cards[0]
    return Allocation(
        node=holding.node,
        at=rfc3339(now),
        unit=unit,
        containers={name: {card: units} for name, units in needs.units.containers.items()},
        cards=dict(holding.cards),
        cpu=needs.cpu,
        memory=needs.memory,
    )


def granted(args: BindArgs, allocation: Allocation, *, annotation: str) -> Order:
    return Order(args, {annotation: encode_allocation(allocation)})


class Outcome(Enum):
    """What became of an order."""

    BOUND = "bound as ordered"
    UNBOUND = "not bound"
    ELSEWHERE = "bound by somebody else"
    GONE = "gone"


def judge(order: Order, pod: Json | None) -> Outcome:
    """Read from ``pod`` (as JSON; None when there is none) what became of ``order``."""
    if pod is None or pod["metadata"].get("uid") != order.args.pod_uid:
        return Outcome.GONE
    node = (pod.get("spec") or {}).get("nodeName")
    if not node:
        return Outcome.UNBOUND
    return Outcome.BOUND if node == order.args.node and _carries(order, pod) else Outcome.ELSEWHERE


def _carries(order: Order, pod: Json) -> bool:
    """Whether the pod's annotations are ours. A plugin may have written another card since."""
    present = pod["metadata"].get("annotations") or {}
    return all(_names_node(present.get(key, ""), order.args.node) for key in order.annotations)


def _names_node(annotation: str, node: str) -> bool:
    try:
        return decode_allocation(annotation).node == node
    except MalformedAllocationError:
        return False
