"""Finds the pod that a person means: by name, by what made it, or in a manifest."""

import difflib
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gpushare_cli.decide.objects.workload import Document, Workload, workloads_of
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.manifests import read_workloads
from gpushare_cli.wording import listed
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, pod_path, pods
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.text.json_object import Json

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_POD_TYPES = ("pod", "pods", "po")
_MAKERS = {
    ("deployment", "deployments", "deploy"): "/apis/apps/v1/namespaces/{}/deployments/{}",
    ("statefulset", "statefulsets", "sts"): "/apis/apps/v1/namespaces/{}/statefulsets/{}",
    ("replicaset", "replicasets", "rs"): "/apis/apps/v1/namespaces/{}/replicasets/{}",
    ("daemonset", "daemonsets", "ds"): "/apis/apps/v1/namespaces/{}/daemonsets/{}",
    ("job", "jobs"): "/apis/batch/v1/namespaces/{}/jobs/{}",
}
"""Types that make pods, as kubectl calls them -> path of one."""
MAX_ALIKE = 1_000
"""Pods of a namespace among which a name is looked for that is like a wrong one: 40,000 took 430 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The pod that is asked about."""

    pod: Json
    exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFinder:
    client: KubeClient
    namespace: str
    all_namespaces: bool = False

    async def find(self, names: Sequence[str], file: str | None) -> Subject:
        """Returns the pod of ``names`` (``NAME``, ``TYPE/NAME`` or ``TYPE NAME``), or of ``file``, in which
        names choose.

        Raises:
            CannotLookError: there is no such pod, or it cannot be read.
        """
        type_, name = _type_and_name(names)
        if file is not None:
            return await self._in_manifest(file, type_, name)
        if not name:
            raise CannotLookError(
                "which pod? Name one, such as: kubectl gpushare why POD; pods that wait are listed by:"
                " kubectl gpushare pods -A"
            )
        if type_ in ("", *_POD_TYPES):
            return Subject(pod=await self._pod(name), exists=True)
        path = next((path for types, path in _MAKERS.items() if type_.partition(".")[0] in types), "")
        if not path:
            raise CannotLookError(f"{type_} makes no pods that are known here: name the pod itself")
        return await self._made_by(path.format(self.namespace, name), f"{type_}/{name}")

    async def _pod(self, name: str) -> Json:
        if self.all_namespaces:
            found = await self._list(PODS, {"fieldSelector": f"metadata.name={name}"})
            if len(found) > 1:
                places = listed([pod["metadata"]["namespace"] for pod in found])
                raise CannotLookError(f"pods named {name} are in the namespaces {places}: choose one with -n")
            if found:
                return found[0]
            raise CannotLookError(f"no namespace has a pod named {name}")
        try:
            return await self.client.get(pod_path(self.namespace, name))
        except ApiError as error:
            if error.is_not_found:
                raise CannotLookError(await self._no_such_pod(name)) from error
            raise CannotLookError(f"the pod {self.namespace}/{name} cannot be read: {error}") from error

    async def _no_such_pod(self, name: str) -> str:
        """Returns what is said of a name that no pod of the namespace has, with those that are like it."""
        missing = f"there is no pod {name} in namespace {self.namespace}"
        elsewhere = here = []
        with suppress(CannotLookError):
            here = await self._list(pods(self.namespace), {"limit": str(MAX_ALIKE)}, METADATA_LIST)
            elsewhere = await self._list(PODS, {"fieldSelector": f"metadata.name={name}"}, METADATA_LIST)
        if elsewhere:
            namespace = elsewhere[0]["metadata"]["namespace"]
            return f"{missing}; namespace {namespace} has one: kubectl gpushare why -n {namespace} {name}"
        names = [pod["metadata"]["name"] for pod in here]
        alike = [other for other in names if other.startswith(name)][:3] or difflib.get_close_matches(
            name, names, cutoff=0.5
        )
        return f"{missing}; did you mean {listed(alike)}?" if alike else missing

    async def _made_by(self, path: str, what: str) -> Subject:
        """Returns the newest pod of ``what`` that waits, else its newest; else one that it would make."""
        try:
            maker = await self.client.get(path)
        except ApiError as error:
            raise CannotLookError(f"{what} in namespace {self.namespace} cannot be read: {error}") from error
        labels = (maker["spec"].get("selector") or {}).get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        made = await self._list(pods(self.namespace), {"labelSelector": selector}) if selector else []
        if made:
            return Subject(pod=max(made, key=_urgency), exists=True)
        documents = [Document(source=what, content=maker)]
        workloads = workloads_of(documents, namespace=self.namespace).workloads
        if not workloads:
            raise CannotLookError(f"{what} in namespace {self.namespace} has no pods")
        return Subject(pod=await self._prioritised(workloads[0].pod), exists=False)

    async def _in_manifest(self, file: str, type_: str, name: str) -> Subject:
        read = read_workloads([file], namespace=self.namespace, stdin=sys.stdin.buffer)
        if not read.workloads:
            why = f": {'; '.join(read.left_out)}" if read.left_out else ""
            raise CannotLookError(f"{file} has no pod, and nothing that makes pods{why}")
        chosen = [workload for workload in read.workloads if _is_named(workload, type_, name)]
        if len(chosen) != 1:
            every = listed([f"{one.kind.lower()}/{one.name}" for one in read.workloads], 8)
            raise CannotLookError(
                f"{file} has {every}: name one of them, such as"
                f" kubectl gpushare why -f {file} {read.workloads[0].kind.lower()}/{read.workloads[0].name}"
            )
        return Subject(pod=await self._prioritised(chosen[0].pod), exists=False)

    async def _prioritised(self, pod: Json) -> Json:
        """Returns ``pod`` with the priority that admission would give it; as it is where that is unknown."""
        spec = pod["spec"]
        if spec.get("priority") is not None:
            return pod
        try:
            classes = (await self.client.get(PRIORITY_CLASSES)).get("items") or []
        except (ApiError, UnreachableError):
            return pod
        named = spec.get("priorityClassName")
        for found in classes:
            if found["metadata"]["name"] == named or (not named and found.get("globalDefault")):
                given = {
                    "priority": found.get("value", 0),
                    "preemptionPolicy": found.get("preemptionPolicy") or "PreemptLowerPriority",
                }
                return {**pod, "spec": {**given, **spec, "priority": found.get("value", 0)}}
        return pod

    async def _list(
        self, path: str, params: dict[str, str], accept: str = "application/json"
    ) -> list[dict[str, Any]]:
        try:
            response = await self.client.send(ApiRequest(path=path, params=params, accept=accept))
        except (ApiError, UnreachableError) as error:
            raise CannotLookError(f"the API server does not list {path}: {error}") from error
        return response.get("items") or []


def _type_and_name(names: Sequence[str]) -> tuple[str, str]:
    """Raises ``CannotLookError`` for more than one pod."""
    if len(names) > 2 or (len(names) == 2 and any("/" in name for name in names)):
        raise CannotLookError(f"why explains one pod at a time, not {' '.join(names)}")
    if len(names) == 2:
        return names[0].lower(), names[1]
    type_, separator, name = (names[0] if names else "").partition("/")
    return (type_.lower(), name) if separator else ("", type_)


def _is_named(workload: Workload, type_: str, name: str) -> bool:
    return (not name or workload.name == name) and (not type_ or workload.kind.lower() == type_)


def _urgency(pod: Json) -> tuple[bool, bool, str]:
    """The greatest is the pod to look at: one without a node first, then one that does not run."""
    waits = not pod["spec"].get("nodeName")
    runs = (pod.get("status") or {}).get("phase") == "Running"
    return waits, not runs, pod["metadata"].get("creationTimestamp") or ""
