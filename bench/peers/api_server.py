"""A stand-in for the API server in a process of its own: it answers at once, and holds a cluster of any size.

It stores objects of any kind, serves lists in pages and watches, and takes every write. It prints its port.
What it has sent is to be had at ``SENT``, and ``EXPIRE`` ends all watches so that everybody lists anew.
``python -m bench.peers.api_server --nodes 5000 --pods-per-node 8``
"""

import argparse
import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from aiohttp import web
from bench.cluster.cluster_objects import (
    MOMENT,
    Layout,
    PlacedPod,
    node_name,
    running_pod,
    running_status,
    share_node_status,
)
from bench.cluster.cluster_objects import share_node as new_share_node
from bench.peers.objects import Objects, Place, Stored, Wanted, merged, place

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json

LEASES = "/apis/coordination.k8s.io/v1/leases"
GROUPS = ("apiextensions.k8s.io/v1",)
"""kopf does not begin before it has found namespaces and CustomResourceDefinitions."""
RESOURCES = {"/api/v1": "namespaces", f"/apis/{GROUPS[0]}": "customresourcedefinitions"}
SENT = "/bench/sent"
EXPIRE = "/bench/expire"
EXPIRED: Json = {
    "kind": "Status",
    "status": "Failure",
    "code": 410,
    "reason": "Expired",
    "message": "too old resource version",
}
"""What a watch is told whose point the API server has forgotten."""


@dataclass(slots=True)
class StandIn:
    """The server. ``events``: what has changed since it started, by collection."""

    objects: Objects = field(default_factory=Objects)
    events: dict[str, list[tuple[str, Stored]]] = field(default_factory=lambda: defaultdict(list))
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    sent: Counter[str] = field(default_factory=Counter)
    """Bytes of lists and of watch events, and the watches that began, by collection."""
    expirations: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if (found := discovery(request.path)) is not None:
            return web.json_response(found)
        if request.path == SENT:
            return web.json_response(self.sent)
        if request.path == EXPIRE:
            return await self._expire()
        where = place(request.path)
        if where is None:
            return _missing(request.path)
        if request.method == "GET":
            return await self._read(request, where)
        body: Json = await request.json() if request.can_read_body else {}
        if request.method == "PATCH" and "apply" not in request.content_type and not self.objects.get(where):
            return _missing(request.path)
        return await self._write(request.method, where, body)

    async def _read(self, request: web.Request, where: Place) -> web.StreamResponse:
        if where.name:
            item = self.objects.get(where)
            return web.json_response(item) if item is not None else _missing(request.path)
        if "watch" in request.query:
            return await self._watch(request, where)
        page = self.objects.page(where, request.query)
        self.sent[list_bytes(where.collection)] += len(page)
        return _json(page)

    async def _write(self, method: str, where: Place, body: Json) -> web.StreamResponse:
        if method == "DELETE":
            if gone := self.objects.remove(where):
                await self._tell(where.collection, "DELETED", gone)
            return web.json_response({"kind": "Status", "status": "Success"})
        if where.subresource == "binding":
            return web.json_response({}, status=201)
        item = self._written(method, where, body)
        kind, stored = self.objects.put(where.collection, item)
        await self._tell(where.collection, kind, stored)
        return _json(stored.content, status=201 if method == "POST" else 200)

    def _written(self, method: str, where: Place, body: Json) -> Json:
        named = {**body, "metadata": dict(body.get("metadata") or {})}
        named["metadata"].setdefault("name", where.name)
        if where.namespace:
            named["metadata"].setdefault("namespace", where.namespace)
        present = self.objects.get(where) if where.name else None
        return merged(present, named) if method == "PATCH" and present is not None else named

    async def _tell(self, collection: str, kind: str, stored: Stored) -> None:
        async with self.changed:
            self.events[collection].append((kind, stored))
            self.changed.notify_all()

    async def _watch(self, request: web.Request, where: Place) -> web.StreamResponse:
        since, wanted = int(request.query["resourceVersion"]), Wanted.of(where, request.query)
        response = web.StreamResponse()
        await response.prepare(request)
        self.sent[watches_begun(where.collection)] += 1
        log, at, begun_in = self.events[where.collection], 0, self.expirations
        while self.expirations == begun_in:
            while at < len(log):
                kind, item = log[at]
                at += 1
                if item.version > since and wanted.takes(item):
                    line = b'{"type":"%s","object":%s}\n' % (kind.encode(), item.content)
                    self.sent[watch_bytes(where.collection)] += len(line)
                    await response.write(line)
            async with self.changed:
                while len(log) <= at and self.expirations == begun_in:
                    await self.changed.wait()
        await response.write(json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n")
        return response

    async def _expire(self) -> web.Response:
        async with self.changed:
            self.expirations += 1
            self.changed.notify_all()
        return web.json_response({})


def list_bytes(collection: str) -> str:
    """Returns under which name the bytes of all lists of ``collection`` are counted."""
    return f"bytes of lists of {collection}"


def watch_bytes(collection: str) -> str:
    """As ``list_bytes``, for the events of watches."""
    return f"bytes of watches of {collection}"


def watches_begun(collection: str) -> str:
    """As ``list_bytes``, for the watches themselves."""
    return f"watches of {collection}"


def discovery(path: str) -> Json | None:
    """Answers what a client asks first; None for other paths."""
    if path == "/version":
        return {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
    if path == "/api":
        return {"versions": ["v1"]}
    if path == "/apis":
        return {"groups": [_group(*group.split("/")) for group in GROUPS]}
    if path in RESOURCES:
        return {"resources": [_resource(RESOURCES[path])]}
    return None


def _group(name: str, version: str) -> Json:
    return {"name": name, "preferredVersion": {"version": version}, "versions": [{"version": version}]}


def _resource(plural: str) -> Json:
    name = plural.removesuffix("s")
    verbs = ["list", "watch", "patch"]
    return {"name": plural, "kind": name, "singularName": name, "namespaced": False, "verbs": verbs}


def _json(content: bytes, *, status: int = 200) -> web.Response:
    return web.Response(body=content, status=status, content_type="application/json")


def _missing(path: str) -> web.Response:
    return web.json_response(
        {"kind": "Status", "code": 404, "reason": "NotFound", "message": f"{path} is not here"}, status=404
    )


def filled(layout: Layout) -> Objects:
    """Returns what a cluster of ``layout`` shows an extender: GPUShareNodes, and the metadata of pods."""
    objects = Objects()
    for index in range(layout.nodes):
        pods = layout.pods(index)
        uids = {pod.name: f"uid-{pod.name}" for pod in pods}
        share_node = merged(new_share_node(index), share_node_status(index, layout, uids))
        share_node["metadata"]["generation"] = 1
        objects.put(paths.SHARE_NODES, share_node)
        for pod in pods:
            objects.put(paths.PODS, metadata_of(pod, uids[pod.name]), node=node_name(index))
    return objects


def metadata_of(pod: PlacedPod, uid: str) -> Json:
    """What the API server sends of a pod to who asks for metadata alone: of its managed fields, too."""
    whole = merged(running_pod(pod), running_status(pod, uid))
    metadata = {**whole["metadata"], "uid": uid, "creationTimestamp": MOMENT, "managedFields": _MANAGED}
    kind = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
    return {**kind, "metadata": metadata}


_MANAGED: list[Json] = [
    {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": MOMENT,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {}}, "f:spec": {"f:containers": {}}},
    }
    for manager in ("kube-controller-manager", "kubelet")
]


async def serve(objects: Objects) -> None:
    """Serves on a port of its own, which it prints; never returns."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", StandIn(objects).answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(json.dumps({"host": host, "port": port}), flush=True)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--pods-per-node", type=int, default=8)
    options = parser.parse_args()
    layout = Layout(nodes=options.nodes, pods_per_node=options.pods_per_node)
    asyncio.run(serve(filled(layout)))


if __name__ == "__main__":
    main()
