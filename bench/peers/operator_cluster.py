"""The cluster that the operator is measured with: thousands of nodes in memory, and a client without network.

All that an operator does is real, from the bytes of an answer on, but for HTTP. What is done here is not the
operator's work: its CPU time is counted apart.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from bench.cluster.cluster_objects import MOMENT, Layout, card_uuid, node, node_name

from gpushare_core.api.names import API_VERSION, COMPONENT_LABEL, CONTROL_PLANE_LABEL, NODE_KIND, POLICY_LABEL
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.clock import utc_now
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import MANAGER, PLUGIN, PORT_ANNOTATION

NAMESPACE = "gpushare-system"
CONTROL_PLANE = "bench-control-plane"
POLICY = "bench"
UID = "00000000-0000-4000-8000-{:012x}"
CLOUD_LABELS = {f"cloud.example/label-{number}": f"value-{number}" for number in range(12)}
GPU_LABEL = {"accelerator": "nvidia"}
ITEMS = 500
"""Of a page."""


@dataclass(slots=True)
class _Machine:
    """What differs from node to node."""

    labels: dict[str, str]
    version: int = 1
    shows: bool = False
    """Whether its kubelet shows units."""


@dataclass(slots=True)
class _Share:
    """A GPUShareNode: what was applied, and what the plugin says of its cards."""

    applied: Json
    version: int
    allocated: list[int] | None = None
    """Of each card; None: the plugin has not answered."""
    reason: str = "Bench"
    """Of a condition."""


@dataclass
class MemoryCluster:
    """An API server with the objects of ``layout``, built anew whenever somebody asks."""

    layout: Layout
    writes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    """CPU time that was spent here."""
    first_write: float | None = None
    """Since somebody has set it to None, by the monotonic clock."""
    _machines: dict[str, _Machine] = field(default_factory=dict)
    _shares: dict[str, _Share] = field(default_factory=dict)
    _others: dict[str, dict[str, Json]] = field(default_factory=dict)
    _watches: dict[str, list[asyncio.Queue[bytes]]] = field(default_factory=dict)
    _version: int = 1

    def __post_init__(self) -> None:
        for index in range(self.layout.nodes):
            self._machines[node_name(index)] = _Machine({**CLOUD_LABELS, **GPU_LABEL})
        self._machines[CONTROL_PLANE] = _Machine({CONTROL_PLANE_LABEL: ""})

    @contextmanager
    def _apart(self) -> Iterator[None]:
        begun = time.process_time()
        try:
            yield
        finally:
            self.seconds += time.process_time() - begun

    def answer(self, request: ApiRequest) -> bytes:
        """Raises ``ApiError`` as the API server would have it."""
        with self._apart():
            return msgspec.json.encode(self._answer(request))

    def _answer(self, request: ApiRequest) -> Json:
        if request.method == "GET":
            return self._read(request)
        return self._write(request)

    def _read(self, request: ApiRequest) -> Json:
        collection, _, name = request.path.rpartition("/")
        if name in self._names(collection):
            return self._body(collection, name)
        names, start = sorted(self._names(request.path)), int(request.params.get("continue", 0))
        wanted = dict(pair.split("=") for pair in request.params.get("labelSelector", "").split(",") if pair)
        found = [self._body(request.path, name) for name in names[start : start + ITEMS]]
        more = {"continue": str(start + ITEMS)} if start + ITEMS < len(names) else {}
        items = [item for item in found if wanted.items() <= (item["metadata"].get("labels") or {}).items()]
        return {"items": items, "metadata": {"resourceVersion": str(self._version), **more}}

    def _write(self, request: ApiRequest) -> Json:
        path, body = request.path.removesuffix("/status"), request.body or {}
        collection, _, name = path.rpartition("/")
        verb = request.method
        if verb == "POST":
            collection, name = path, body["metadata"]["name"]
        self._count(f"{verb} {collection.rpartition('/')[2]}{request.path[len(path) :]}")
        if name not in self._names(collection) and verb == "DELETE":
            raise ApiError(404, "NotFound", name)
        if verb == "DELETE":
            return self._remove(collection, name)
        existed = name in self._names(collection)
        self._change(collection, name, body)
        return self.publish(collection, name, "MODIFIED" if existed else "ADDED")

    def _remove(self, collection: str, name: str) -> Json:
        body = self.publish(collection, name, "DELETED")
        del self._others[collection][name]
        return body

    def _count(self, what: str) -> None:
        self.writes[what] = self.writes.get(what, 0) + 1
        self.first_write = self.first_write or time.monotonic()

    def _change(self, collection: str, name: str, patch: Json) -> None:
        if collection == paths.NODES:
            machine = self._machines[name]
            machine.labels = _merged(machine.labels, patch["metadata"].get("labels") or {})
        elif collection == paths.SHARE_NODES:
            former = self._shares.get(name)
            applied = _merged(former.applied, patch) if former else patch
            self._shares[name] = _Share(applied, 0, former.allocated if former else None)
        else:
            kept = self._others.setdefault(collection, {})
            defaults = {"metadata": {"uid": UID.format(self._version), "generation": 1}}
            kept[name] = _merged(kept.get(name, defaults), patch)

    def publish(self, collection: str, name: str, event: str) -> Json:
        """Gives the object a new version, and tells the watches of it."""
        self._version += 1
        if collection == paths.NODES:
            self._machines[name].version = self._version
        elif collection == paths.SHARE_NODES:
            self._shares[name].version = self._version
        else:
            self._others[collection][name]["metadata"]["resourceVersion"] = str(self._version)
        body = self._body(collection, name)
        told = msgspec.json.encode({"type": event, "object": body})
        for queue in self._watches.get(collection, ()):
            queue.put_nowait(told)
        return body

    def _names(self, collection: str) -> Mapping[str, Any]:
        if collection == paths.NODES:
            return self._machines
        return self._shares if collection == paths.SHARE_NODES else self._others.get(collection, {})

    def _body(self, collection: str, name: str) -> Json:
        if collection == paths.NODES:
            return self._node(name)
        return self._share(name) if collection == paths.SHARE_NODES else self._others[collection][name]

    def _node(self, name: str) -> Json:
        machine = self._machines[name]
        body = node(_index(name), self.layout)
        hostname = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        body["metadata"] = {
            "name": name,
            "uid": UID.format(_index(name)),
            "resourceVersion": str(machine.version),
            "creationTimestamp": MOMENT,
            "labels": {**hostname, **machine.labels},
            "managedFields": [_managed(machine)],
        }
        if not machine.shows:
            for part in ("capacity", "allocatable"):
                body["status"][part] = {"cpu": "192", "memory": "1536Gi", "pods": "250"}
        return body

    def _share(self, name: str) -> Json:
        share = self._shares[name]
        metadata = share.applied["metadata"]
        body = {
            **share.applied,
            "apiVersion": API_VERSION,
            "kind": NODE_KIND,
            "metadata": {
                **metadata,
                "uid": UID.format(1 << 20 | _index(name)),
                "generation": 1,
                "resourceVersion": str(share.version),
                "managedFields": [_share_fields()],
            },
        }
        if share.allocated is None:
            return body
        status = self._status(name, share.allocated, share.reason)
        body["metadata"]["managedFields"].append(_status_fields(status))
        return {**body, "status": status}

    def _status(self, name: str, allocated: list[int], reason: str) -> Json:
        layout = self.layout
        total = layout.cards * layout.card_units
        return {
            "observedGeneration": 1,
            "pluginVersion": "0.1.0",
            "dialect": GPUSHARE.name,
            "memoryUnit": "1Gi",
            "conditions": [
                _condition("Registered"),
                _condition("CardsHealthy", reason),
                _condition("LedgerInSync"),
            ],
            "units": {"total": total, "allocated": sum(allocated)},
            "memory": {
                "total": f"{total}Gi",
                "allocated": f"{sum(allocated)}Gi",
                "used": f"{sum(allocated)}Gi",
            },
            "cards": [self._card(name, card, units) for card, units in enumerate(allocated)],
        }

    def _card(self, name: str, card: int, units: int) -> Json:
        pod = {
            "namespace": "default",
            "name": f"held-{name}-{card}",
            "uid": UID.format(card),
            "container": "main",
            "units": units,
            "usedMemory": f"{units}Gi",
        }
        return {
            "index": card,
            "uuid": card_uuid(_index(name), card),
            "model": "Bench",
            "memory": f"{self.layout.card_units}Gi",
            "units": self.layout.card_units,
            "allocatedUnits": units,
            "usedMemory": f"{units}Gi",
            "computeScore": 100,
            "health": "Healthy",
            "lock": "Memory" if units else "",
            "pods": [pod] if units else [],
        }

    # What the cluster does by itself.

    def start_plugin(self, index: int) -> None:
        """The plugin of a node runs, has registered and answers."""
        with self._apart():
            name = node_name(index)
            labels = {COMPONENT_LABEL: PLUGIN, POLICY_LABEL: POLICY}
            self.put_pod(f"plugin-{name}", name, labels)
            self._machines[name].shows = True
            self.publish(paths.NODES, name, "MODIFIED")
            self._shares[name].allocated = [0] * self.layout.cards
            self.publish(paths.SHARE_NODES, name, "MODIFIED")

    def put_pod(self, name: str, on: str, labels: Mapping[str, str], **annotations: str) -> None:
        managed = {"app.kubernetes.io/managed-by": MANAGER}
        metadata = {"name": name, "uid": name, "labels": {**managed, **labels}, "annotations": annotations}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        self._change(
            paths.pods(NAMESPACE), name, {"metadata": metadata, "spec": {"nodeName": on}, "status": ready}
        )
        self.publish(paths.pods(NAMESPACE), name, "ADDED")

    def start_extender(self) -> None:
        """The extender beside kube-scheduler serves where its DaemonSet says."""
        template = self._others[paths.daemon_sets(NAMESPACE)]["gpushare-extender"]["spec"]["template"][
            "metadata"
        ]
        annotations = {PORT_ANNOTATION: template["annotations"][PORT_ANNOTATION]}
        self.put_pod("extender", CONTROL_PLANE, template["labels"], **annotations)

    def finish_jobs(self) -> None:
        """Every run of hostctl succeeds."""
        for name in self._others.get(paths.jobs(NAMESPACE), {}):
            now = rfc3339(utc_now())
            complete = {"type": "Complete", "status": "True", "lastTransitionTime": now}
            self._change(paths.jobs(NAMESPACE), name, {"status": {"conditions": [complete]}})
            self.publish(paths.jobs(NAMESPACE), name, "MODIFIED")

    def put_policy(self) -> None:
        spec = {"nodes": [{"selector": {"matchLabels": GPU_LABEL}, "mode": "Memory"}]}
        metadata = {"name": POLICY, "creationTimestamp": MOMENT}
        self._change(paths.POLICIES, POLICY, {"metadata": metadata, "spec": spec})
        self.publish(paths.POLICIES, POLICY, "ADDED")

    def put_share_node(self, index: int, applied: Json) -> None:
        """As if the operator had applied it."""
        self._change(paths.SHARE_NODES, node_name(index), applied)
        self.publish(paths.SHARE_NODES, node_name(index), "ADDED")

    def place_pod(self, index: int, card: int, units: int, *, reason: str = "") -> None:
        """The plugin writes what a card has given away, and another reason of a condition if given."""
        with self._apart():
            name = node_name(index)
            share = self._shares[name]
            if share.allocated is not None:
                share.allocated[card] = units
            share.reason = reason or share.reason
            self.publish(paths.SHARE_NODES, name, "MODIFIED")

    def size_of(self, collection: str, name: str) -> int:
        """Returns the bytes of an object as JSON, as etcd has those of CustomResourceDefinitions."""
        return len(msgspec.json.encode(self._body(collection, name)))

    def status_of_policy(self) -> Json:
        found: Json = self._others[paths.POLICIES][POLICY].get("status", {})
        return found

    async def watch(self, path: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._watches.setdefault(path, []).append(queue)
        while True:
            yield await queue.get()


class MemoryClient(KubeClient):
    """Writes, reads and watches ``cluster`` without a network."""

    def __init__(self, cluster: MemoryCluster) -> None:
        nowhere = Credentials("http://nowhere", ssl.create_default_context, str)
        super().__init__(nowhere, field_manager="bench")
        self._cluster = cluster

    async def _exchange(self, request: ApiRequest) -> bytes:
        if request.body is not None:
            msgspec.json.encode(request.body)
        await asyncio.sleep(0)
        return self._cluster.answer(request)

    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncIterator[bytes]:
        """Never silent too long, whatever ``idle``: nothing is between."""
        del idle
        async for line in self._cluster.watch(request.path):
            yield line


def _index(name: str) -> int:
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 1 << 16


def _managed(machine: _Machine) -> Json:
    labels: Json = {f"f:{key}": {} for key in machine.labels}
    status: Json = {f"f:{key}": {} for key in ("allocatable", "capacity", "conditions", "images", "nodeInfo")}
    fields = {"f:metadata": {"f:labels": labels}, "f:status": status}
    return {"manager": "kubelet", "operation": "Update", "time": MOMENT, "fieldsV1": fields}


def _share_fields() -> Json:
    spec: Json = {f"f:{key}": {} for key in ("policy", "mode", "memoryUnit", "dialect", "devices")}
    return {
        "manager": "gpushare-operator",
        "operation": "Apply",
        "time": MOMENT,
        "fieldsV1": {"f:spec": spec},
    }


LIST_KEYS = {"conditions": "type", "cards": "uuid"}
"""Of lists that are maps by their schema: field -> key. Of other lists who wrote them is known as a whole."""


def _status_fields(status: Json) -> Json:
    """Returns the managed fields of a plugin: every field of every card has an owner, which is half of the
    object."""
    return {
        "manager": "gpushare-plugin",
        "operation": "Update",
        "subresource": "status",
        "apiVersion": API_VERSION,
        "fieldsType": "FieldsV1",
        "time": MOMENT,
        "fieldsV1": {"f:status": _owned(status)},
    }


def _owned(value: Mapping[str, Any]) -> Json:
    return {f"f:{name}": _owned_field(name, part) for name, part in value.items()}


def _owned_field(name: str, value: Any) -> Json:
    if isinstance(value, Mapping):
        return _owned(value)
    if not isinstance(value, list) or name not in LIST_KEYS:
        return {}
    key = LIST_KEYS[name]
    return {
        f"k:{msgspec.json.encode({key: item[key]}).decode()}": {".": {}, **_owned(item)} for item in value
    }


def _condition(kind: str, reason: str = "Bench") -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "as it should be",
        "lastTransitionTime": MOMENT,
        "observedGeneration": 1,
    }


def _merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, Mapping):
        return patch
    base = dict(old) if isinstance(old, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = _merged(base.get(key), value)
    return base
