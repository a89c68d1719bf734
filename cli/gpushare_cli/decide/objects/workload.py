"""Workloads of manifests: which pods each of them would have."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from gpushare_cli.decide.scheduling.written_pod import WrittenPod
from gpushare_cli.errors import CannotLookError
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

MAX_PODS = 10_000
"""Of all manifests together."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a manifest, and where it was found, such as ``web.yaml, document 2``."""

    source: str
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Pod, or a controller with the pods that it would make: all alike."""

    kind: str
    namespace: str
    name: str
    source: str
    pods: int
    pod: Json
    """As the API server would have one of them: ``apiVersion``, ``kind``, ``metadata`` with name and
    namespace, ``spec``."""
    is_unnamed: bool = False
    """Whether each creation makes another one, by ``generateName``."""
    first: int = 1
    """Number of the first pod."""

    def pod_name(self, place: int) -> str:
        """Returns a name for the pod at ``place`` (from 0). A Pod and the pods of a StatefulSet have names of
        their own; others get random ones from their controllers, and numbers here."""
        is_itself = self.kind == "Pod" and self.pods == 1
        return self.name if is_itself else f"{self.name}-{self.first + place}"

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Equal of manifests that are the same object."""
        return self.kind, self.namespace, self.name, self.source if self.is_unnamed else ""

    def with_replicas(self, pods: int | None) -> "Workload":
        return self if pods is None else replace(self, pods=pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """What manifests contain."""

    workloads: tuple[Workload, ...] = ()
    left_out: tuple[str, ...] = ()
    """For people: objects whose pods are not considered, and why. Without objects that have no pods."""

    @property
    def pods(self) -> int:
        return sum(workload.pods for workload in self.workloads)


class _Metadata(Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None


class _Object(Struct, rename="camel"):
    kind: str = ""
    metadata: _Metadata = field(default_factory=_Metadata)
    spec: dict[str, Any] | None = None
    items: list[Any] | None = None

    @property
    def name(self) -> str:
        return self.metadata.name or (self.metadata.generate_name or "").rstrip("-")


class _Template(Struct):
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


class _Ordinals(Struct):
    start: int = 0


class _ControllerSpec(Struct, rename="camel"):
    """Source: specs of ``apps/v1`` and ``batch/v1``."""

    template: _Template
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None
    ordinals: _Ordinals | None = None


class _CronJobSpec(Struct, rename="camel"):
    job_template: _Template


def workloads_of(documents: Iterable[Document], *, namespace: str) -> Workloads:
    """Returns the workloads in ``documents``, in their order; those that name no namespace are of
    ``namespace``.

    Raises:
        CannotLookError: an object cannot be read as what it says that it is, or there are too many pods.
    """
    workloads: dict[tuple[str, str, str, str], Workload] = {}
    """One that is there twice is one, as for the API server."""
    left_out: list[str] = []
    for document in _flat(documents):
        read = _read(document, namespace)
        if isinstance(read, Workload):
            workloads[read.identity] = read
        elif read:
            left_out.append(read)
    return within_limit(Workloads(workloads=tuple(workloads.values()), left_out=tuple(left_out)))


def within_limit(workloads: Workloads) -> Workloads:
    """Raises ``CannotLookError`` where there are too many pods."""
    if workloads.pods > MAX_PODS:
        raise CannotLookError(f"the manifests have {workloads.pods} pods, and {MAX_PODS} is the most")
    return workloads


def _flat(documents: Iterable[Document], depth: int = 0) -> Iterator[Document]:
    for document in documents:
        content = document.content
        if isinstance(content, dict) and str(content.get("kind", "")).endswith("List") and "items" in content:
            if depth:
                raise CannotLookError(f"{document.source}: a list in a list")
            items = _as(document, _Object).items or []
            yield from _flat(
                (
                    Document(source=f"{document.source}, item {number}", content=item)
                    for number, item in enumerate(items, start=1)
                ),
                depth + 1,
            )
        elif content is not None:
            yield document


def _read(document: Document, namespace: str) -> Workload | str:
    """Returns a workload, or why its pods are not considered; empty where it has none."""
    found = _as(document, _Object)
    if not found.kind:
        raise CannotLookError(f"{document.source}: it has no kind, so it is no object of Kubernetes")
    if reason := _LEFT_OUT.get(found.kind):
        return f"{found.kind} {found.name}: {reason}"
    read = _KINDS.get(found.kind)
    if read is None:
        has_pods = "template" in (found.spec or {})
        return f"{found.kind} {found.name}: this version does not know its pods" if has_pods else ""
    if not found.name:
        raise CannotLookError(f"{document.source}: the {found.kind} has no name")
    shape = _Described(document=document, found=found)
    template, count, first = read(shape)
    used = found.metadata.namespace or namespace
    metadata = {**(template.metadata or {}), "name": found.name, "namespace": used}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.spec or {}}
    decoded = _as(Document(source=document.source, content=pod), KubePod)
    _as(Document(source=document.source, content=pod), WrittenPod)
    if not decoded.spec.containers:
        raise CannotLookError(f"{document.source}: the {found.kind} {found.name} has no containers")
    return Workload(
        kind=found.kind,
        namespace=used,
        name=found.name,
        source=document.source,
        pods=max(0, count),
        pod=pod,
        is_unnamed=not found.metadata.name,
        first=first,
    )


@dataclass(frozen=True, slots=True)
class _Described:
    document: Document
    found: _Object

    def spec(self, shape: type[T]) -> T:
        return _as(Document(source=f"{self.document.source}, spec", content=self.found.spec or {}), shape)


_Read = tuple[_Template, int, int]
"""The template of the pods, how many there are, and the number of the first."""


def _pod(shape: _Described) -> _Read:
    whole = _as(shape.document, _Template)
    return whole, 1, 1


def _replicated(shape: _Described) -> _Read:
    spec = shape.spec(_ControllerSpec)
    return spec.template, 1 if spec.replicas is None else spec.replicas, 1


def _stateful(shape: _Described) -> _Read:
    template, count, _ = _replicated(shape)
    ordinals = shape.spec(_ControllerSpec).ordinals
    return template, count, ordinals.start if ordinals else 0


def _job(shape: _Described) -> _Read:
    spec = shape.spec(_ControllerSpec)
    return spec.template, _at_once(spec), 1


def _cron_job(shape: _Described) -> _Read:
    """One run of it."""
    job = shape.spec(_CronJobSpec).job_template
    content = Document(source=f"{shape.document.source}, spec.jobTemplate.spec", content=job.spec or {})
    spec = _as(content, _ControllerSpec)
    return spec.template, _at_once(spec), 1


def _at_once(spec: _ControllerSpec) -> int:
    """Returns how many pods of a Job run at the same time, at most."""
    parallel = 1 if spec.parallelism is None else spec.parallelism
    return 0 if spec.suspend else min(parallel, spec.completions or parallel)


_KINDS: Mapping[str, Callable[[_Described], _Read]] = {
    "Pod": _pod,
    "Deployment": _replicated,
    "ReplicaSet": _replicated,
    "ReplicationController": _replicated,
    "StatefulSet": _stateful,
    "Job": _job,
    "CronJob": _cron_job,
}
_LEFT_OUT: Mapping[str, str] = {
    "DaemonSet": "a DaemonSet has a pod on each node that it selects; these are not considered",
}


def _as(document: Document, shape: type[T]) -> T:
    """YAML has dates and numbers as keys, which JSON has as text: so does the API server."""
    try:
        return msgspec.json.decode(msgspec.json.encode(document.content), type=shape)
    except (*UNREADABLE_JSON, TypeError) as error:
        raise CannotLookError(f"{document.source}: {error}") from error
