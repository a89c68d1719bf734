"""Static pods of a simulated node: files in its kubelet's folder, and their mirrors in the API server.

A file that is written anew is another pod of the same name. Source: ``applyDefaults`` of
``pkg/kubelet/config``, ``tryReconcileMirrorPods``, ``HandlePodCleanups``, ``basicMirrorClient`` (1.36).
"""

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare_core.api.names import MIRROR_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

SOURCE = "kubernetes.io/config.source"
"""Annotation by the kubelet: the source of the pod."""
NAMESPACE = "default"
SYNC = 60.0
"""Seconds after which at most a kubelet finds that a static pod has no mirror any more: it is told at once of
one that is to end, or is that of a former pod. Source: ``syncFrequency``."""
HOUSEKEEPING = 2.0
"""Seconds until the kubelet has deleted the mirror of a pod that it does not have."""
GRACE = 2.0
"""Seconds after which at most the containers of a former pod have ended: until then its mirror stays.
Source: ``allowStaticPodStart``."""
RETRY = 1.0


def is_static(body: Json) -> bool:
    return bool(body["metadata"]["annotations"].get(SOURCE) == "file")


def is_mirror(body: Json) -> bool:
    """Whether its kubelet takes it for one, whoever has made it: it never starts such a pod."""
    return MIRROR_ANNOTATION in body["metadata"]["annotations"]


@dataclass(slots=True)
class Manifests:
    """The files of one node, which outlive all processes."""

    node: str
    pods: dict[str, Json] = field(default_factory=dict)
    """By UID, which is a digest of the file."""

    def write(self, place: int, containers: list[Json], inits: list[Json]) -> None:
        """In place of what was in the file number ``place``."""
        name = self.name_of(place)
        self.remove(name)
        spec: Json = {"containers": containers, "initContainers": inits, "nodeName": self.node}
        uid = hashlib.md5(json.dumps([name, spec]).encode(), usedforsecurity=False).hexdigest()
        metadata = {"name": name, "namespace": NAMESPACE, "uid": uid, "annotations": {SOURCE: "file"}}
        self.put_back({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def name_of(self, place: int) -> str:
        return f"static-{place}-{self.node}"

    def put_back(self, pod: Json) -> None:
        if self.named(pod["metadata"]["name"]) is None:
            self.pods[pod["metadata"]["uid"]] = pod

    def remove(self, name: str) -> Json | None:
        """Returns what was there."""
        present = self.named(name)
        return self.pods.pop(present["metadata"]["uid"]) if present else None

    def named(self, name: str) -> Json | None:
        return next((pod for pod in self.pods.values() if pod["metadata"]["name"] == name), None)


@dataclass(slots=True)
class Mirrors:
    """What one kubelet shows of its static pods."""

    client: KubeClient
    dice: random.Random
    manifests: Manifests
    notify: Callable[[], None]
    statuses: dict[str, Json] = field(default_factory=dict)
    """UID -> status of static pods that were admitted or refused."""
    _made: set[str] = field(default_factory=set)
    """Static pods that have had a mirror since the kubelet was started."""
    _busy: set[str] = field(default_factory=set)
    """Names of pods of which a request is under way."""

    def restart(self) -> None:
        self.statuses.clear()
        self._made.clear()
        self._busy.clear()

    def due(self, bodies: Mapping[str, Json]) -> Iterator[Coroutine[Any, Any, None]]:
        """Yields what the kubelet does about mirrors when the API server has ``bodies``."""
        mirrors = {body["metadata"]["name"]: body for body in bodies.values() if is_mirror(body)}
        for uid, pod in self.manifests.pods.items():
            name = pod["metadata"]["name"]
            if uid in self.statuses and name not in self._busy:
                yield from self._due(pod, mirrors.get(name))
        for name, mirror in mirrors.items():
            if name not in self._busy and self.manifests.named(name) is None:
                yield self._work(name, self._delete_by_name(mirror))

    def _due(self, pod: Json, mirror: Json | None) -> Iterator[Coroutine[Any, Any, None]]:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        status = self.statuses[uid]
        if mirror is None:
            if status["phase"] == "Running":
                yield self._work(name, self._create(pod, after=SYNC if uid in self._made else 0.3))
            return
        self._made.add(uid)
        if "deletionTimestamp" in mirror["metadata"]:
            yield self._work(name, self._renew(pod, mirror, after=0.1))
        elif mirror["metadata"]["annotations"][MIRROR_ANNOTATION] != uid and status["phase"] == "Running":
            yield self._work(name, self._renew(pod, mirror, after=GRACE))
        elif mirror["status"].get("phase") != status["phase"]:
            yield self._work(name, self._write_status(mirror, status))

    async def _work(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._busy.add(name)
        try:
            await work
        except ApiError:
            pass  # it is there already, or gone
        except UnreachableError:
            await asyncio.sleep(RETRY)
        await asyncio.sleep(0.1)  # until it has heard of it
        self._busy.discard(name)
        self.notify()

    async def _create(self, pod: Json, *, after: float) -> None:
        await asyncio.sleep(self.dice.uniform(0.0, after))
        uid = pod["metadata"]["uid"]
        if self.statuses.get(uid, {}).get("phase") != "Running" or uid not in self.manifests.pods:
            return
        metadata = {key: value for key, value in pod["metadata"].items() if key != "uid"}
        metadata["annotations"] = {**metadata["annotations"], MIRROR_ANNOTATION: uid}
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self._made.add(uid)
        await self.client.send(ApiRequest(method="POST", path=path, body={**pod, "metadata": metadata}))

    async def _renew(self, pod: Json, mirror: Json, *, after: float) -> None:
        await asyncio.sleep(self.dice.uniform(0.0, after))
        await self._delete(mirror, {"uid": mirror["metadata"]["uid"]})
        await self._create(pod, after=0.0)

    async def _delete_by_name(self, mirror: Json) -> None:
        """It does not look which pod has the name by now. Source: ``HandlePodCleanups``."""
        await asyncio.sleep(self.dice.uniform(0.0, HOUSEKEEPING))
        if self.manifests.named(mirror["metadata"]["name"]) is None:
            await self._delete(mirror, {})

    async def _delete(self, mirror: Json, condition: Json) -> None:
        path = pod_path(mirror["metadata"]["namespace"], mirror["metadata"]["name"])
        await self.client.send(ApiRequest(method="DELETE", path=path, body={"metadata": condition}))

    async def _write_status(self, mirror: Json, status: Json) -> None:
        await asyncio.sleep(self.dice.uniform(0.0, 0.1))
        path = f"{pod_path(mirror['metadata']['namespace'], mirror['metadata']['name'])}/status"
        body = {"metadata": {"uid": mirror["metadata"]["uid"]}, "status": status}
        await self.client.send(ApiRequest(method="PATCH", path=path, body=body))


def way_of_mirror(mirror: Json, manifests: Manifests, admitted: Mapping[str, object]) -> Iterator[str]:
    """Yields reasons why the API server does not show the state of a static pod yet."""
    name = mirror["metadata"]["name"]
    pod = manifests.named(name)
    if pod is None or "deletionTimestamp" in mirror["metadata"]:
        yield f"end of the mirror {name}"
    elif pod["metadata"]["uid"] in admitted:
        if mirror["metadata"]["annotations"][MIRROR_ANNOTATION] != pod["metadata"]["uid"]:
            yield f"another mirror {name}"
        elif mirror["status"].get("phase") != "Running":
            yield f"admission of {name}"
    elif mirror["status"].get("phase") != "Failed":
        yield f"refusal of {name}"
