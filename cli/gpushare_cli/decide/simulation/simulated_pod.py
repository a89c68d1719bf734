"""A pod whose place is simulated. Pods of one workload share all but their names."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec

from gpushare_cli.decide.objects.workload import Workload
from gpushare_cli.decide.scheduling.written_pod import WrittenAffinity, WrittenSpec, written_pod
from gpushare_cli.decide.why.pod_amounts import pod_amounts
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.preemption.bound_pods import OwnedPod
from gpushare_core.text.json_object import Json


@dataclass(frozen=True, slots=True, eq=False)
class PodShape:
    """What pods of one workload have in common: compared by identity."""

    pod: Json
    kube_pod: KubePod
    written: WrittenSpec
    """The same pod's spec, as far as kube-scheduler decides by it."""
    other_needs: Mapping[str, Fraction]
    """Resource that is not ours -> what it requests."""

    @property
    def gates(self) -> tuple[str, ...]:
        """Names of its scheduling gates."""
        return tuple(gate.name for gate in self.written.scheduling_gates or ())

    @property
    def unconsidered(self) -> Iterator[str]:
        """Yields the fields of the pod that count for kube-scheduler, and not here."""
        affinity = self.written.affinity or WrittenAffinity()
        kinds = (affinity.pod_affinity, affinity.pod_anti_affinity)
        if any(kind is not None and kind.required for kind in kinds):
            yield "pod affinity"
        if self.written.topology_spread_constraints:
            yield "topology spread constraints"
        if self.written.claims:
            yield "volumes"
        if (self.pod.get("spec") or {}).get("resourceClaims"):
            yield "resource claims"
        if self.written.scheduler_name not in (None, "", "default-scheduler"):
            yield f"whether schedulerName {self.written.scheduler_name} asks gpushare"
        if (self.pod.get("spec") or {}).get("runtimeClassName"):
            yield "what RuntimeClasses add"
        if any(port.host_port for each in self.written.all_containers for port in each.ports or ()):
            yield "host ports"

    @property
    def node(self) -> str:
        """To which a manifest itself binds the pod; mostly empty."""
        return self.kube_pod.spec.node_name


def shape_of_pod(pod: Json) -> PodShape:
    """Raises ``msgspec.ValidationError`` for what is no pod."""
    kube_pod = msgspec.convert(pod, KubePod)
    return PodShape(
        pod=pod,
        kube_pod=kube_pod,
        written=(spec := written_pod(pod).spec),
        other_needs=other_needs(spec),
    )


def other_needs(spec: WrittenSpec) -> dict[str, Fraction]:
    return {name: amount for name, amount in pod_amounts(spec).items() if name not in RESOURCES}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPod:
    uid: str
    """Of the pod that waits; made up for one that does not exist yet."""
    present_uid: str = ""
    """Of the pod that waits or moves."""
    namespace: str
    name: str
    workload: str
    """Such as ``Deployment web``; empty for a pod that exists."""
    moved_from: str = ""
    """The node on which it runs now."""
    is_waiting: bool = False
    """Whether it exists and waits for a node."""
    shape: PodShape

    @property
    def reference(self) -> PodReference:
        return PodReference(self.namespace, self.name, self.uid)


def pods_of(workload: Workload) -> Iterator[SimulatedPod]:
    shape = shape_of_pod(workload.pod)
    for place in range(workload.pods):
        name = workload.pod_name(place)
        yield SimulatedPod(
            uid=f"simulated:{workload.source}:{workload.kind}:{workload.namespace}/{name}",
            namespace=workload.namespace,
            name=name,
            workload=f"{workload.kind} {workload.name}",
            shape=shape,
        )


def readable_pods(pods: Iterable[Any]) -> list[Json]:
    """Returns those whose fields have the types that Kubernetes gives them."""
    return [pod for pod in pods if isinstance(pod, dict) and _is_readable(pod)]


def _is_readable(pod: Json) -> bool:
    try:
        msgspec.convert(pod, OwnedPod)
    except msgspec.ValidationError:
        return False
    return True


def waiting_pods(pods: Iterable[Json]) -> list[SimulatedPod]:
    """Returns ``pods``, which the API server has and no node, in the order in which kube-scheduler takes
    them: by priority, then the oldest first."""
    shapes = ((pod, shape_of_pod(pod)) for pod in pods)
    ordered = sorted(shapes, key=lambda entry: (-entry[1].kube_pod.priority, *_age_and_name(entry[0])))
    return [_existing(pod, shape, is_waiting=True) for pod, shape in ordered]


def moved_pods(pods: Iterable[Json], *, node: str) -> list[SimulatedPod]:
    """Returns the pods that would be made in place of ``pods``, which run on ``node``; by name."""
    ordered = sorted(pods, key=_name)
    return [_existing(pod, shape_of_pod(replacement_of(pod)), moved_from=node) for pod in ordered]


def replacement_of(pod: Json) -> Json:
    """Returns what a controller would make in its place: the same without a node and our annotations."""
    metadata = {key: text for key, text in pod["metadata"].items() if key not in ("annotations", "uid")}
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _existing(pod: Json, shape: PodShape, *, moved_from: str = "", is_waiting: bool = False) -> SimulatedPod:
    metadata = pod["metadata"]
    uid = str(metadata.get("uid", ""))
    return SimulatedPod(
        uid=f"moved:{uid}" if moved_from else uid,
        present_uid=uid,
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        workload="",
        moved_from=moved_from,
        is_waiting=is_waiting,
        shape=shape,
    )


def _name(pod: Json) -> tuple[str, str]:
    metadata = pod["metadata"]
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _age_and_name(pod: Json) -> tuple[str, str, str]:
    return str(pod["metadata"].get("creationTimestamp") or ""), *_name(pod)
