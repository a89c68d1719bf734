"""The Binding that is sent for a pod, and what the pod's state says of its outcome. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from gpushare_core.allocation_annotation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    encode_allocation,
)
from gpushare_core.api.timestamps import rfc3339, unix_nanoseconds
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.objects.holder import Holder
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNode
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.pod_state import PodState


@dataclass(frozen=True, slots=True)
class Binding:
    """Binds ``pod`` to ``node`` and gives it ``annotations``, in one write."""

    pod: PodReference
    node: str
    annotations: dict[str, str]
    room: int = 0
    """Bytes that the annotations take, with those that the plugin writes beside them later."""

    def to_json(self, resource_version: str = "") -> Json:
        """Returns a ``v1.Binding`` of the pod at ``resource_version``; empty: at any.

        Source ``BindingREST``: the API server refuses it for a pod of another UID or version. It moves the
        annotations to the pod in the write that sets the node, and does not check their size.
        """
        metadata: Json = {"name": self.pod.name, "namespace": self.pod.namespace, "uid": self.pod.uid}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        if self.annotations:
            metadata["annotations"] = self.annotations
        return {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node},
        }


def share_binding(
    pod: PodReference, allocation: Allocation, share_node: ShareNode, *, now: datetime
) -> Binding:
    """Returns the Binding that carries ``allocation`` to the pod, also in the annotations of the node's
    dialect. Those are for people's tools: only our own annotation counts."""
    dialect, places, at = share_node.dialect, share_node.places(allocation.resource), unix_nanoseconds(now)
    beside = dialect.codec.bind_annotations(allocation, places, at)
    written = {**beside, dialect.allocation_annotation: encode_allocation(allocation)}
    later = dialect.codec.assignment_annotations(allocation.resource, at)
    return Binding(pod, allocation.node, written, room=size_of({**written, **later}))


def allocation_of(holder: Holder, request: PodRequest, share_node: ShareNode, *, now: datetime) -> Allocation:
    """Returns the durable form of a reservation on ``share_node``: what each container has of its cards."""
    classes = {own.card: _class_of(own.card, holder, share_node) for own in holder.cards}
    units = {card: share_node.unit_of(resource) for card, resource in classes.items()}
    first = next(iter(classes))
    return Allocation(
        node=holder.node,
        uid=holder.uid,
        at=rfc3339(now),
        unit=units[first],
        resource=classes[first],
        containers=_containers(request, classes),
        cards=holder.shares,
        other_units={card: unit for card, unit in units.items() if unit != units[first]},
        cpu=request.cpu,
        memory=request.memory,
    )


def _class_of(card: str, holder: Holder, share_node: ShareNode) -> ResourceClass:
    meaning = holder.meaning_of(card)
    return meaning[0] if meaning else next(iter(share_node.resources.values()))


def _containers(request: PodRequest, classes: Mapping[str, ResourceClass]) -> dict[str, dict[str, int]]:
    """Returns container -> card UUID -> units; ``classes`` says what each card is of."""
    containers: dict[str, dict[str, int]] = {}
    for part in request.parts:
        (asked,) = part.resources
        cards = [card for card, resource in classes.items() if resource is asked.resource]
        containers |= mode_serving(asked.resource).containers(part, cards)
    return containers


class BindingOutcome(Enum):
    """What became of a Binding; the values are for people."""

    BOUND = "bound"
    UNBOUND = "not bound"
    ELSEWHERE = "bound by somebody else"
    GONE = "gone"


def binding_outcome(binding: Binding, pod: PodState | None) -> BindingOutcome:
    """Returns what ``pod`` (None when there is none of that name) says of ``binding``."""
    if pod is None or pod.uid != binding.pod.uid:
        return BindingOutcome.GONE
    if not pod.node:
        return BindingOutcome.UNBOUND
    ours = pod.node == binding.node and _carries_allocation(binding, pod)
    return BindingOutcome.BOUND if ours else BindingOutcome.ELSEWHERE


def _carries_allocation(binding: Binding, pod: PodState) -> bool:
    """Compares only the node: a plugin may have written another card since."""
    if Dialect.allocation_annotation not in binding.annotations:
        return True
    annotation = (pod.metadata.annotations or {}).get(Dialect.allocation_annotation, "")
    try:
        return decode_allocation(annotation, uid=binding.pod.uid).node == binding.node
    except MalformedAllocationError:
        return False
