"""An API server for the page: lists with field selectors, watches, refusals, and times without any answer."""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.test_utils import unused_port
from tests.fakes.system_tls import system_tls

from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.paths import NODES, PODS, SHARE_NODES, pods
from gpushare_core.text.json_object import Json

READ: Mapping[str, Callable[[Json], str]] = {
    "spec.nodeName": lambda item: item["spec"].get("nodeName", ""),
    "spec.unschedulable": lambda item: json.dumps(item["spec"].get("unschedulable", False)),
    "status.phase": lambda item: item["status"].get("phase", ""),
    "metadata.name": lambda item: item["metadata"]["name"],
}
"""The field selectors that it knows; the others select everything."""


@dataclass(slots=True)
class WebCluster:
    """``objects``: collection -> name, with the namespace before it -> object."""

    port: int = field(default_factory=unused_port)
    objects: dict[str, dict[str, Json]] = field(
        default_factory=lambda: {NODES: {}, PODS: {}, SHARE_NODES: {}}
    )
    refused: int = 0
    """Status of every answer; 0: none is refused."""
    forbidden: frozenset[str] = frozenset()
    """Paths that nobody may read."""
    unwatched: bool = False
    """Whether nobody may watch."""
    muted: bool = False
    """Whether watches send nothing."""
    silent: bool = False
    """Whether what is asked gets no answer at all."""
    asked: list[str] = field(default_factory=list)
    """Paths."""
    _version: int = 1
    _log: list[tuple[int, str, Json]] = field(default_factory=list)
    _runner: web.AppRunner | None = None

    def credentials(self) -> Credentials:
        return Credentials(f"http://127.0.0.1:{self.port}", system_tls, lambda: "token")

    def put(self, collection: str, item: Json) -> None:
        item = copy.deepcopy(item)
        key = _key(item)
        known = self.objects.setdefault(collection, {})
        kind = "MODIFIED" if key in known else "ADDED"
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        known[key] = item
        self._log.append((self._version, collection, {"type": kind, "object": item}))

    def put_node(self, share_node: Json, **labels: str) -> None:
        """A GPUShareNode, and the Node that it is of."""
        self.put(SHARE_NODES, share_node)
        named = {label.replace("_", "."): value for label, value in labels.items()}
        self.put(
            NODES,
            {"metadata": {"name": share_node["metadata"]["name"], "labels": named}, "spec": {}, "status": {}},
        )

    def delete(self, collection: str, key: str) -> None:
        item = copy.deepcopy(self.objects[collection].pop(key))
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((self._version, collection, {"type": "DELETED", "object": item}))

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/{rest:.*}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.01, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def stop(self) -> None:
        """Nobody answers any more; what was open is cut."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        if self.silent:
            await asyncio.Event().wait()
        is_refused = (self.unwatched and "watch" in request.query) or request.path in self.forbidden
        if status := self.refused or (403 if is_refused else 0):
            body = {"kind": "Status", "code": status, "reason": "Test", "message": "refused"}
            return web.json_response(body, status=status)
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        namespaced = request.path.removeprefix("/api/v1/namespaces/")
        namespace, _, name = namespaced.partition("/pods/")
        if name and (found := self.objects[PODS].get(f"{namespace}/{name}")):
            return web.json_response(found)
        if "watch" in request.query:
            return await self._watch(request)
        if name:
            return web.json_response({"code": 404, "reason": "NotFound", "message": "not found"}, status=404)
        return web.json_response(
            {"metadata": {"resourceVersion": str(self._version)}, "items": self._items(request)}
        )

    def _items(self, request: web.Request) -> list[Json]:
        namespace = request.path.removeprefix("/api/v1/namespaces/").removesuffix("/pods")
        is_of_namespace = request.path == pods(namespace)
        found = self.objects.get(PODS if is_of_namespace else request.path, {}).values()
        selector = request.query.get("fieldSelector", "")
        return [
            item
            for item in found
            if _selects(selector, item)
            and (not is_of_namespace or item["metadata"]["namespace"] == namespace)
            and _has_labels(request.query.get("labelSelector", ""), item)
        ]

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response, at = web.StreamResponse(), int(request.query["resourceVersion"])
        await response.prepare(request)
        while True:
            for version, collection, event in self._log:
                if not self.muted and version > at and collection == request.path:
                    await response.write(json.dumps(event).encode() + b"\n")
                    at = version
            await asyncio.sleep(0.01)


def _key(item: Json) -> str:
    namespace = item["metadata"].get("namespace", "")
    return f"{namespace}/{item['metadata']['name']}" if namespace else item["metadata"]["name"]


def _selects(selector: str, item: Json) -> bool:
    for term in filter(None, selector.split(",")):
        name, _, value = term.replace("!=", "=").partition("=")
        if name in READ and (READ[name](item) == value) is ("!=" in term):
            return False
    return True


def _has_labels(selector: str, item: Json) -> bool:
    """It knows ``key=value`` alone; what asks for a set finds nothing."""
    wanted = (term.partition("=") for term in filter(None, selector.split(",")))
    labels = item["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, _, value in wanted)


@asynccontextmanager
async def web_cluster() -> AsyncIterator[WebCluster]:
    cluster = WebCluster()
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()
