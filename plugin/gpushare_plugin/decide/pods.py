"""A node's pods as the API server tells of them: who asks for units, and which card they were promised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gpushare_core.books.allocation import Allocation, MalformedAllocationError, decode_allocation
from gpushare_core.placement.requests import PodRequest, asked_sum, pod_request

Json = Mapping[str, Any]


class PodName(NamedTuple):
    """What the kubelet's PodResources know a pod by."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a pod's spec asks for; it never changes."""

    request: PodRequest
    hidden: frozenset[str]
    """Ordinary init containers: PodResources do not show what they hold."""
    cpu: str = "0"
    memory: str = "0"

    @property
    def visible(self) -> dict[str, int]:
        """Containers that PodResources show, and their units."""
        asked = self.request.containers.items()
        return {name: units for name, units in asked if name not in self.hidden}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod that is bound to this node and not finished."""

    name: PodName
    uid: str
    created: str = ""
    deleting: bool = False
    annotation: str | None = None
    ask: Ask | None = None
    """None until the pod's spec was read."""

    @property
    def allocation(self) -> Allocation | None:
        """None where there is no annotation, or one that no program of ours wrote."""
        try:
            return decode_allocation(self.annotation) if self.annotation else None
        except MalformedAllocationError:
            return None


Pods = Mapping[PodName, Pod]


def read_metadata(item: Json, annotation: str) -> Pod:
    """A pod from its metadata alone; ``annotation`` is the key of the allocation."""
    metadata = item["metadata"]
    return Pod(
        name=PodName(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        created=metadata.get("creationTimestamp") or "",
        deleting="deletionTimestamp" in metadata,
        annotation=(metadata.get("annotations") or {}).get(annotation),
    )


def read_pod(item: Json, annotation: str, resource: str) -> Pod:
    """A pod from its whole object."""
    return replace(read_metadata(item, annotation), ask=read_ask(item["spec"], resource))


def read_ask(spec: Json, resource: str) -> Ask:
    inits = spec.get("initContainers") or ()
    return Ask(
        request=pod_request(spec, resource),
        hidden=frozenset(each["name"] for each in inits if each.get("restartPolicy") != "Always"),
        cpu=asked_sum(spec, "cpu"),
        memory=asked_sum(spec, "memory"),
    )
