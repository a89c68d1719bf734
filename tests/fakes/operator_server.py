"""The fake API server on a socket, as much of it as kopf and the operator's client speak."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.operator_cluster import NAMESPACE, MemoryApi

from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import lease_path
from gpushare_core.text.json_object import Json

LEASE = lease_path(NAMESPACE, "gpushare-operator")
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


@dataclass
class Server:
    """``foreign``: writes that are not our client's, which names its field manager."""

    api: MemoryApi
    foreign: list[str] = field(default_factory=list)
    failures: int = 0
    """Requests that are still answered with 500."""
    lease: Json = field(default_factory=lambda: {"metadata": {"resourceVersion": "1"}})
    """The Lease by which one operator works at a time; nobody holds it at first."""
    _events: dict[str, list[Json]] = field(default_factory=dict)
    _watches: dict[str, list[asyncio.Queue[Json | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.api.on_change = self._publish

    def _publish(self, collection: str, event: str, body: Json) -> None:
        watch_event = {"type": event, "object": body}
        self._events.setdefault(collection, []).append(watch_event)
        for queue in self._watches.get(collection, ()):
            queue.put_nowait(watch_event)

    @property
    def open_watches(self) -> int:
        return sum(map(len, self._watches.values()))

    def end_watches(self, *, with_error: bool) -> None:
        """Ends every watch, with the error that its resource version is too old if asked to."""
        for queues in self._watches.values():
            for queue in queues:
                if with_error:
                    queue.put_nowait(GONE)
                queue.put_nowait(None)

    def restore(self, version: int) -> None:
        """As after a restart with etcd of a backup of that version."""
        self.api.restore(version)
        self._events.clear()
        self.end_watches(with_error=True)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.failures:
            self.failures -= 1
            return web.json_response({"kind": "Status", "message": "not now"}, status=500)
        try:
            if request.path == LEASE:
                return web.json_response(await self._answer_lease(request))
            if request.method == "GET":
                return await self._read(request)
            return web.json_response(await self._write(request))
        except ApiError as error:
            refusal = {"kind": "Status", "reason": error.reason, "message": error.message}
            return web.json_response({**refusal, "code": error.status}, status=error.status)

    async def _answer_lease(self, request: web.Request) -> Json:
        present = self.lease["metadata"]["resourceVersion"]
        if request.method == "PUT":
            lease: Json = await request.json()
            if lease["metadata"].get("resourceVersion") != present:
                raise ApiError(409, "Conflict", "it was changed")
            self.lease = {**lease, "metadata": {"resourceVersion": f"{int(present) + 1}"}}
        return self.lease

    async def _read(self, request: web.Request) -> web.StreamResponse:
        if (found := discovery(request.path)) is not None:
            return web.json_response(found)
        if "watch" in request.query:
            return await self._watch(request)
        collection, _, name = request.path.rpartition("/")
        if one := self.api.of(collection).get(name):
            return web.json_response(one)
        items, version = await self.api.list_all(
            request.path, label_selector=request.query.get("labelSelector", "")
        )
        return web.json_response(_page(items, version, request))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        queue: asyncio.Queue[Json | None] = asyncio.Queue()
        since = int(request.query["resourceVersion"])
        for watch_event in self._events.get(request.path, ()):
            if int(watch_event["object"]["metadata"]["resourceVersion"]) > since:
                queue.put_nowait(watch_event)
        self._watches.setdefault(request.path, []).append(queue)
        response = web.StreamResponse()
        await response.prepare(request)
        while event := await queue.get():
            await response.write(json.dumps(event).encode() + b"\n")
        self._watches[request.path].remove(queue)
        return response

    async def _write(self, request: web.Request) -> Json:
        body: Json = await request.json()
        if request.method != "DELETE" and request.query.get("fieldManager") != "gpushare-operator":
            self.foreign.append(f"{request.method} {request.path}")
        match request.method, request.content_type:
            case "PATCH", "application/apply-patch+yaml":
                return await self.api.apply(request.path, body)
            case "PATCH", _:
                return await self.api.merge(request.path, body)
            case "POST", _:
                return await self.api.create(request.path, body)
            case _:
                return await self.api.delete(request.path, uid=body["preconditions"]["uid"])


BACKBONE = [("", "v1", "namespaces"), ("apiextensions.k8s.io", "v1", "customresourcedefinitions")]
"""kopf does not begin before it has found these, even if it watches none of them."""


def discovery(path: str) -> Json | None:
    """Answers to what a client asks first."""
    groups = sorted({(group, version) for group, version, _ in BACKBONE if group})
    if path == "/api":
        return {"versions": ["v1"]}
    if path == "/apis":
        return {
            "groups": [
                {
                    "name": group,
                    "preferredVersion": {"version": version},
                    "versions": [{"version": version}],
                }
                for group, version in groups
            ]
        }
    for group, version in [("", "v1"), *groups]:
        if path == (f"/apis/{group}/{version}" if group else "/api/v1"):
            return {"resources": [_resource(kind) for at, _, kind in BACKBONE if at == group]}
    return None


def _page(items: list[Json], version: str, request: web.Request) -> Json:
    """Returns a page of a list that does not change while it is read; ``continue`` is the index of the next
    page."""
    start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", len(items) or 1))
    more = {"continue": str(start + limit)} if start + limit < len(items) else {}
    return {"items": items[start : start + limit], "metadata": {"resourceVersion": version, **more}}


def _resource(plural: str) -> Json:
    verbs = ["list", "watch", "patch"]
    name = plural.removesuffix("s")
    return {
        "name": plural,
        "kind": name,
        "singularName": name,
        "namespaced": False,
        "verbs": verbs,
    }


@asynccontextmanager
async def serving(server: Server, folder: Path) -> AsyncIterator[Path]:
    """Yields the path of a kubeconfig."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with TestServer(app) as running:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(kubeconfig_for(str(running.make_url("")).rstrip("/"))))
        try:
            yield kubeconfig
        finally:
            server.end_watches(with_error=False)


def kubeconfig_for(url: str) -> dict[str, Any]:
    return {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "it", "user": {"token": "secret"}}],
    }


@dataclass
class ScriptedServer:
    """Gives ``answers`` one after the other, and keeps the requests."""

    answers: list[Json | web.Response] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], str, Any]] = field(default_factory=list)
    authorization: str = ""

    async def answer(self, request: web.Request) -> web.Response:
        content = await request.text()
        body = json.loads(content) if content else None
        self.authorization = request.headers.get("Authorization", "")
        self.requests.append((request.method, request.path, dict(request.query), request.content_type, body))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)
