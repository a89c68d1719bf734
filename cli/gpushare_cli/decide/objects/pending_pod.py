"""A pod that waits for a node, or is bound and has not started."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Raw, Struct

from gpushare_cli.decide.ledger import booking_of
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.pod import KubePod, PodMetadata, PodSpec
from gpushare_core.text.json_object import UNREADABLE_JSON

SCHEDULED = "PodScheduled"


class PendingCondition(Struct):
    """Source: ``v1.PodCondition``."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class PendingStatus(Struct):
    conditions: list[PendingCondition] | None = None


class PendingMetadata(PodMetadata, rename="camel", kw_only=True):
    creation_timestamp: str | None = None


class _Shape(Struct):
    metadata: PendingMetadata = msgspec.field(default_factory=PendingMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PendingStatus = msgspec.field(default_factory=PendingStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPod:
    metadata: PendingMetadata
    node: str
    """Empty while it waits for one."""
    request: PodRequest
    """Of all resources of ours, in any dialect."""
    update: PodUpdate
    """What it has by its annotations."""
    reason: str = ""
    """Why it waits, by kube-scheduler; empty where nobody has said so."""

    def asks_for(self, resources: Mapping[str, ResourceClass]) -> PodRequest:
        return self.request.of(resources)


def read_pending_pod(raw: Raw) -> PendingPod | None:
    """Returns None for a pod that cannot be read."""
    try:
        shape = msgspec.json.decode(raw, type=_Shape)
        update = booking_of(raw)
    except UNREADABLE_JSON:
        return None
    return PendingPod(
        metadata=shape.metadata,
        node=shape.spec.node_name,
        request=KubePod(shape.metadata, shape.spec).request(RESOURCES),
        update=update,
        reason=next((found.message for found in _unscheduled(shape.status)), ""),
    )


def _unscheduled(status: PendingStatus) -> list[PendingCondition]:
    return [found for found in status.conditions or () if found.type == SCHEDULED and found.status == "False"]
