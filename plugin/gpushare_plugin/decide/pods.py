"""A node's pods as the API server has them: who asks for units, and which card they were promised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpushare_core.books.allocation import Allocation, MalformedAllocationError, decode_allocation
from gpushare_core.json_object import Json
from gpushare_core.placement.requests import PodRequest, read_request


class PodName(NamedTuple):
    """What the kubelet's PodResources know a pod by."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod that is bound to this node and not finished."""

    name: PodName
    uid: str
    created: str = ""
    """RFC 3339, UTC."""
    deleting: bool = False
    annotation: str | None = None
    request: PodRequest | None = None
    """None until the pod's spec was read; it never changes."""

    @property
    def allocation(self) -> Allocation | None:
        """What is annotated; None where there is no annotation, or one that no program of ours wrote."""
        try:
            return decode_allocation(self.annotation) if self.annotation else None
        except MalformedAllocationError:
            return None

    @property
    def annotated_card(self) -> str | None:
        """UUID of the card that the pod was promised; None where there is no annotation."""
        allocation = self.allocation
        return next(iter(allocation.held()), None) if allocation else None


Pods = Mapping[PodName, Pod]


def read_metadata(item: Json, annotation: str) -> Pod:
    """Returns a pod by its metadata alone; ``annotation`` is the key of the allocation."""
    metadata = item["metadata"]
    return Pod(
        name=PodName(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        created=metadata.get("creationTimestamp") or "",
        deleting="deletionTimestamp" in metadata,
        annotation=(metadata.get("annotations") or {}).get(annotation),
    )


def read_pod(item: Json, annotation: str, resource: str) -> Pod:
    """Returns a pod by its whole object; ``resource`` is the extended resource that it may ask for."""
    return replace(read_metadata(item, annotation), request=read_request(item["spec"], resource))
