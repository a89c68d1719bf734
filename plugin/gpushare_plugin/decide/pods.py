"""A node's pods as the API server tells of them: who asks for units, and which card they were promised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpushare_core.books.allocation import Allocation, MalformedAllocationError, decode_allocation
from gpushare_core.placement.requests import asked_sum, pod_request

Json = Mapping[str, Any]


class PodName(NamedTuple):
    """What the kubelet's PodResources know a pod by."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What a pod's spec asks for; it never changes."""

    containers: dict[str, int]
    total: int
    init_containers: frozenset[str]
    cpu: str = "0"
    memory: str = "0"


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
        """None where there is no annotation, or one that no program of ours wrote."""
        try:
            return decode_allocation(self.annotation) if self.annotation else None
        except MalformedAllocationError:
            return None

    @property
    def annotated_card(self) -> str | None:
        """UUID of the card that the pod was promised."""
        return next(iter(self.allocation.held()), None) if self.allocation else None


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


def read_request(spec: Json, resource: str) -> PodRequest:
    inits = spec.get("initContainers") or ()
    found = pod_request(spec, resource)
    return PodRequest(
        containers=found.containers,
        total=found.total,
        init_containers=frozenset(each["name"] for each in inits if each.get("restartPolicy") != "Always"),
        cpu=asked_sum(spec, "cpu"),
        memory=asked_sum(spec, "memory"),
    )


def shown_containers(request: PodRequest) -> dict[str, int]:
    """Returns the containers that PodResources show -> units: all but ordinary init containers."""
    requested = request.containers.items()
    return {name: units for name, units in requested if name not in request.init_containers}
