"""A node's pods as the API server has them: who asks for units, and which card they were promised."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from gpushare_core.allocation_annotation import Allocation, MalformedAllocationError, decode_allocation
from gpushare_core.api.names import MIRROR_ANNOTATION, SIMULATED_LOAD_ANNOTATION
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.dialects.codec import Codec
from gpushare_core.dialects.legacy import LegacyAllocation, MalformedAnnotationsError
from gpushare_core.dialects.table import ANNOTATION_KEYS
from gpushare_core.placement.requests import PodRequest, ResourceClass, read_request
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import version_number


class PodName(NamedTuple):
    """What the kubelet's PodResources know a pod by."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod that is bound to this node."""

    name: PodName
    uid: str
    static_uid: str = ""
    """The UID by which the kubelet knows a static pod, of which this is the mirror; else empty."""
    version: int = 0
    """The resource version: of two readings of the pod the greater is newer."""
    created: str = ""
    """RFC 3339, UTC."""
    deleting: bool = False
    annotation: str | None = None
    """Our own."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of every dialect, ours among them."""
    others_size: int = 0
    """Bytes of all other annotations."""
    simulated_load: str = ""
    """Its annotation about the load on simulated cards."""
    asked: PodRequest | None = None
    """All that the pod asks for, in any dialect; None until its spec was read. It never changes."""
    request: PodRequest | None = None
    """The part of it that this plugin serves on this node."""
    running: bool = False
    """Whether it ran when it was read as a whole: then all its containers were admitted before."""
    started: bool = False
    """Whether the kubelet had acknowledged it by then: also while its init containers run."""

    ended: bool = False
    """Whether it was in one of the phases ``FINISHED``, which a pod does not leave."""

    @property
    def kubelet_uid(self) -> str:
        """By which the kubelet's checkpoint knows the pod."""
        return self.static_uid or self.uid

    def asking_for(self, names: Collection[str]) -> "Pod":
        if self.asked is None:
            return self
        request = self.asked.of(names)
        return self if request == self.request else replace(self, request=request)

    @property
    def allocation(self) -> Allocation | None:
        """What is annotated; None where there is no annotation, or one that is no allocation of this pod.

        It names the UID that the API server knows, also in the mirror of a static pod.
        """
        if not self.annotation:
            return None
        decode = _known_allocation if len(self.annotation) <= MAX_KEPT else _decoded
        return decode(self.annotation, self.uid)

    @property
    def annotated_cards(self) -> tuple[str, ...]:
        """UUIDs of the cards that the pod was promised; empty where there is no annotation."""
        return tuple(self.allocation.held()) if self.allocation else ()

    def legacy(self, codec: Codec) -> LegacyAllocation | None:
        """Returns what a system that was replaced, or another scheduler, annotated: anybody may have.

        None where that is nothing, or nothing that makes sense.
        """
        try:
            return codec.read_legacy(self.annotations)
        except MalformedAnnotationsError:
            return None


def _decoded(annotation: str, uid: str) -> Allocation | None:
    try:
        return decode_allocation(annotation, uid=uid)
    except MalformedAllocationError:
        return None


_known_allocation = lru_cache(maxsize=256)(_decoded)
"""Each admission and each round looks at the annotations of all pods, several times."""

Pods = Mapping[PodName, Pod]

FINISHED = ("Succeeded", "Failed")
"""Phases of pods that the watch leaves out, so that nothing would make us forget such a pod."""
MAX_KEPT = 4096
"""Characters of an annotation that is remembered with what it says: hundreds of larger ones would be MiBs."""
MAX_LOAD = 1024
"""Characters of a load to simulate that are kept: anybody annotates pods, on nodes with real cards, too."""


class _NodePodMetadata(msgspec.Struct, rename="camel"):
    """Source: ``metav1.ObjectMeta``."""

    name: str
    namespace: str
    uid: str
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    annotations: dict[str, str] | None = None


class _Listed(msgspec.Struct):
    metadata: _NodePodMetadata


class _Resources(msgspec.Struct):
    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class _NodePodContainer(msgspec.Struct, rename="camel"):
    name: str
    restart_policy: str | None = None
    resources: _Resources | None = None


class _NodePodSpec(msgspec.Struct, rename="camel"):
    containers: list[_NodePodContainer] | None = None
    init_containers: list[_NodePodContainer] | None = None
    node_name: str | None = None
    priority: int | None = None


class _NodePodStatus(msgspec.Struct, rename="camel"):
    phase: str | None = None
    start_time: str | None = None


class _Whole(msgspec.Struct):
    spec: _NodePodSpec
    status: _NodePodStatus = msgspec.field(default_factory=_NodePodStatus)


def read_metadata(item: Json, annotation: str) -> Pod:
    """Returns a pod by its metadata alone; ``annotation`` is the key of the allocation. Raises ``ValueError``
    where it is no pod of the API server's."""
    metadata = msgspec.convert(item, _Listed).metadata
    annotations = metadata.annotations or {}
    return Pod(
        name=PodName(metadata.namespace, metadata.name),
        uid=metadata.uid,
        static_uid=annotations.get(MIRROR_ANNOTATION, ""),
        version=version_number(metadata.resource_version),
        created=metadata.creation_timestamp or "",
        deleting=metadata.deletion_timestamp is not None,
        annotation=annotations.get(annotation),
        annotations={key: annotations[key] for key in ANNOTATION_KEYS if key in annotations},
        others_size=size_of({key: text for key, text in annotations.items() if key not in ANNOTATION_KEYS}),
        simulated_load=annotations.get(SIMULATED_LOAD_ANNOTATION, "")[:MAX_LOAD],
    )


def is_bound_to(item: Json, node: str) -> bool:
    """Whether the pod is bound to ``node``. Raises as ``read_metadata``."""
    return msgspec.convert(item, _Whole).spec.node_name == node


def read_pod(item: Json, annotation: str, resources: Mapping[str, ResourceClass]) -> Pod:
    """Returns a pod by its whole object, which may ask for ``resources``. Raises as ``read_metadata``."""
    whole = msgspec.convert(item, _Whole)
    running = whole.status.phase == "Running"
    request = read_request(msgspec.to_builtins(whole.spec), resources)
    return replace(
        read_metadata(item, annotation),
        asked=request,
        request=request,
        running=running,
        ended=whole.status.phase in FINISHED,
        started=running or bool(whole.status.start_time),
    )
