"""A small API server on a real socket: pods, bindings, GPUShareNodes, lists in pages, watches, faults.

It keeps resource versions and UIDs, and shows in its pod collection only what the extender selects: bound
and not finished. A fault answers once in place of the server.
"""

import asyncio
import copy
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.fakes.patience import PATIENCE
from tests.fakes.system_tls import system_tls

from gpushare_core.kube import paths
from gpushare_core.kube.credentials import Credentials
from gpushare_core.text.json_object import Json

Answer = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""In place of the server's own answer; None: the server answers after all."""

PODS = paths.PODS
SHARE_NODES = paths.SHARE_NODES
LEASES = paths.leases("gpushare-system")
STORAGE_CAPACITIES = paths.storage_capacities("gpushare-system")
DISRUPTION_BUDGETS = paths.DISRUPTION_BUDGETS
EVENTS = "events"
FINISHED = ("Succeeded", "Failed")


def status(code: int, message: str = "told so", **headers: str) -> Answer:
    """A fault: the server refuses with a ``metav1.Status``."""

    async def answer(_: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "code": code, "reason": "Test", "message": message}
        return web.json_response(body, status=code, headers=headers)

    return answer


async def passing(_: web.Request) -> None:
    """No fault: the server answers this request."""


def json_answer(body: Json) -> Answer:
    """A fault: the server answers with another object."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    return answer


def stream(*lines: Json | str | bytes) -> Answer:
    """A fault: a watch that sends ``lines`` and then ends."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(_encoded(line))
        await response.write_eof()
        return response

    return answer


def error_event(code: int) -> Json:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": "Test", "message": "gone"}}


def bookmark(version: int) -> Json:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


async def cut(request: web.Request) -> web.StreamResponse:
    """A fault: the connection breaks before an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def _encoded(line: Json | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, as it came."""

    method: str
    path: str
    query: dict[str, str]
    token: str
    accept: str

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query


@dataclass(slots=True)
class _Fault:
    method: str
    path: str
    watch: bool
    answer: Answer


@dataclass(slots=True)
class FakeApi:
    """``objects`` by collection path and (namespace, name)."""

    server: TestServer | None = None
    version: int = 100
    page: int = 500
    objects: dict[str, dict[tuple[str, str], Json]] = field(
        default_factory=lambda: {
            PODS: {},
            DISRUPTION_BUDGETS: {},
            EVENTS: {},
            SHARE_NODES: {},
            LEASES: {
                ("", "gpushare-extender"): {"metadata": {"name": "gpushare-extender", "resourceVersion": "1"}}
            },
            STORAGE_CAPACITIES: {("", "gpushare-wake-up"): {"metadata": {"name": "gpushare-wake-up"}}},
        }
    )
    seen: list[Seen] = field(default_factory=list)
    bearer: str = "first"
    _log: list[tuple[int, str, Json]] = field(default_factory=list)
    _compacted: int = 0
    _watch_round: int = 0
    _faults: list[_Fault] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    # What tests do

    def credentials(self) -> Credentials:
        assert self.server is not None
        url = str(self.server.make_url("")).rstrip("/")
        return Credentials(url, system_tls, lambda: self.bearer)

    def fail(self, method: str, path: str, *answers: Answer, watch: bool = False) -> None:
        """The next requests of ``method`` for ``path`` get ``answers``, one each, in order."""
        self._faults.extend(_Fault(method, path, watch, answer) for answer in answers)

    def recover(self) -> None:
        """Faults that nobody met yet do not happen."""
        self._faults.clear()

    def put(self, collection: str, item: Json) -> Json:
        """Create or replace; watches see it."""
        item = copy.deepcopy(item)
        key = _key(item)
        before = self.objects[collection].get(key)
        item["metadata"]["resourceVersion"] = str(self._tick())
        self.objects[collection][key] = item
        self._record(collection, before, item)
        return item

    def delete(self, collection: str, name: str, namespace: str = "") -> None:
        before = self.objects[collection].pop((namespace, name))
        before = copy.deepcopy(before)
        before["metadata"]["resourceVersion"] = str(self._tick())
        if _visible(collection, before):
            self._add(collection, "DELETED", before)

    def pod(self, name: str, namespace: str = "default") -> Json:
        return self.objects[PODS][namespace, name]

    def history(self, collection: str) -> list[Json]:
        """Every version of every object that watches were sent."""
        return [event["object"] for _, path, event in self._log if path == collection]

    def forget_history(self) -> None:
        """As after a compaction: watches break off and must start anew."""
        self._log.clear()
        self._compacted = self.version

    def restore(self, pods: Iterable[Json], *, version: int) -> None:
        """As after a restart with etcd of a backup: the versions go on from there. Watches stay open."""
        self._log.clear()
        self.version = version
        self.objects[PODS] = {}
        for pod in pods:
            held = copy.deepcopy(pod)
            held["metadata"]["resourceVersion"] = str(version)
            self.objects[PODS][_key(held)] = held

    def end_watches(self) -> None:
        """Those that are open end, as they do in time."""
        self._watch_round += 1

    def requests(self, method: str, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and seen.path == path]

    async def wait_for(self, what: str, holds: Callable[[], bool], within: float = PATIENCE) -> None:
        """Wait until ``holds`` after some request or write."""
        deadline = asyncio.get_running_loop().time() + within
        while not holds():
            self._changed.clear()
            left = deadline - asyncio.get_running_loop().time()
            assert left > 0, f"waited {within} s for {what}"
            try:
                await asyncio.wait_for(self._changed.wait(), min(left, 0.02))
            except TimeoutError:
                continue

    # The server

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get(PODS, self._collection)
        app.router.add_get(SHARE_NODES, self._collection)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}", self._read_pod)
        app.router.add_post("/api/v1/namespaces/{namespace}/pods/{name}/binding", self._bind)
        app.router.add_post("/api/v1/namespaces/{namespace}/pods/{name}/eviction", self._evict)
        app.router.add_get(DISRUPTION_BUDGETS, self._collection)
        app.router.add_post("/apis/events.k8s.io/v1/namespaces/{namespace}/events", self._create_event)
        app.router.add_get(LEASES + "/{name}", self._read_lease)
        app.router.add_put(LEASES + "/{name}", self._update_lease)
        app.router.add_patch(STORAGE_CAPACITIES + "/{name}", self._touch_capacity)
        app.router.add_patch(LEASES + "/{name}", self._patch_lease)
        app.router.add_route("*", "/{rest:.*}", self._missing)
        app.middlewares.append(self._intercept)
        return app

    @property
    def _intercept(self) -> Any:
        @web.middleware
        async def intercept(request: web.Request, handler: Any) -> web.StreamResponse:
            self.seen.append(_seen(request))
            self._changed.set()
            fault = next((fault for fault in self._faults if _concerns(fault, self.seen[-1])), None)
            if fault is not None:
                self._faults.remove(fault)
                if (answered := await fault.answer(request)) is not None:
                    return answered
            answer: web.StreamResponse = await handler(request)
            return answer

        return intercept

    async def _missing(self, request: web.Request) -> web.StreamResponse:
        return await _answer(request, status(404, "the server could not find the requested resource"))

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await self._watch(request)
        selector = request.query.get("fieldSelector", "") + ","
        of_node = re.search(r"spec\.nodeName=([^,]*),", selector)
        not_by = re.findall(r"spec\.schedulerName!=([^,]*),", selector)
        in_phase = re.search(r"status\.phase=([^,]*),", selector)
        not_in = re.findall(r"status\.phase!=([^,]*),", selector)
        items = [
            item
            for item in self.objects[request.path].values()
            if (item["spec"].get("nodeName", "") == of_node[1] if of_node else _visible(request.path, item))
            and item["spec"].get("schedulerName") not in not_by
            and (in_phase is None or item.get("status", {}).get("phase", "Pending") == in_phase[1])
            and item.get("status", {}).get("phase") not in not_in
        ]
        if "PartialObjectMetadataList" in request.headers.get("Accept", ""):
            items = [{"metadata": item["metadata"]} for item in items]
        begin = int(request.query.get("continue") or 0)
        end = begin + min(self.page, int(request.query.get("limit") or self.page))
        meta = {"resourceVersion": str(self.version)}
        if end < len(items):
            meta["continue"] = str(end)
        return web.json_response({"metadata": meta, "items": items[begin:end]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        at = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        watch_round = self._watch_round
        while at >= self._compacted:
            if watch_round != self._watch_round:
                return response
            for version, path, event in list(self._log):
                if version > at and path == request.path:
                    await response.write(_encoded(event))
                    at = version
            await asyncio.sleep(0.002)
        await response.write(_encoded(error_event(410)))
        return response

    async def _read_pod(self, request: web.Request) -> web.StreamResponse:
        pod = self.objects[PODS].get((request.match_info["namespace"], request.match_info["name"]))
        return web.json_response(pod) if pod else await self._missing(request)

    async def _evict(self, request: web.Request) -> web.StreamResponse:
        """Marks the pod as terminating: somebody has to delete it."""
        eviction = await request.json()
        key = request.match_info["namespace"], request.match_info["name"]
        pod = self.objects[PODS].get(key)
        if pod is None:
            return await self._missing(request)
        if eviction["deleteOptions"]["preconditions"]["uid"] != pod["metadata"]["uid"]:
            return await _answer(request, status(409, "the UID in the precondition does not match"))
        ending = copy.deepcopy(pod)
        ending["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
        self.put(PODS, ending)
        return web.json_response({}, status=201)

    async def _create_event(self, request: web.Request) -> web.StreamResponse:
        event = await request.json()
        if _key(event) in self.objects[EVENTS]:
            return await _answer(request, status(409, "events already exists"))
        return web.json_response(self.put(EVENTS, event), status=201)

    async def _touch_capacity(self, request: web.Request) -> web.StreamResponse:
        """Server-side apply: creates what is not there."""
        assert "apply-patch" in request.headers["Content-Type"]
        assert request.query["fieldManager"]
        return web.json_response(self.put(STORAGE_CAPACITIES, await request.json()))

    async def _patch_lease(self, request: web.Request) -> web.StreamResponse:
        """Server-side apply creates what is not there; a merge patch is one of annotations alone."""
        body = await request.json()
        if "apply-patch" in request.headers["Content-Type"]:
            return web.json_response(self.put(LEASES, body))
        present = self.objects[LEASES].get(("", request.match_info["name"]))
        if present is None:
            return await self._missing(request)
        metadata = present["metadata"]
        merged = {**(metadata.get("annotations") or {}), **body.get("metadata", {}).get("annotations", {})}
        annotations = {key: text for key, text in merged.items() if text is not None}
        return web.json_response(
            self.put(LEASES, {**present, "metadata": {**metadata, "annotations": annotations}})
        )

    async def _read_lease(self, request: web.Request) -> web.StreamResponse:
        lease = self.objects[LEASES].get(("", request.match_info["name"]))
        return web.json_response(lease) if lease else await self._missing(request)

    async def _update_lease(self, request: web.Request) -> web.StreamResponse:
        """Creates what is not there, as the API server does with Leases."""
        lease = await request.json()
        present, version = self.objects[LEASES].get(_key(lease)), lease["metadata"].get("resourceVersion")
        if present and version is None:
            return await _answer(request, status(422, "resourceVersion: must be specified for an update"))
        if present and version != present["metadata"]["resourceVersion"]:
            return await _answer(request, status(409, "the object has been modified"))
        return web.json_response(self.put(LEASES, lease))

    async def _bind(self, request: web.Request) -> web.StreamResponse:
        key = request.match_info["namespace"], request.match_info["name"]
        refusal = self.bind(key, await request.json())
        return await _answer(request, refusal) if refusal else web.json_response({}, status=201)

    def bind(self, key: tuple[str, str], binding: Json) -> Answer | None:
        """As ``BindingREST.Create``: the refusal, or None when the pod is bound."""
        pod = self.objects[PODS].get(key)
        if pod is None:
            return status(404, f"pods {key[1]} not found")
        if binding["metadata"].get("uid", pod["metadata"]["uid"]) != pod["metadata"]["uid"]:
            return status(409, "the UID in the precondition does not match")
        if binding["metadata"].get("resourceVersion") not in (None, pod["metadata"]["resourceVersion"]):
            return status(409, "the ResourceVersion in the precondition does not match")
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            return status(409, f"pod {key[1]} is already assigned to a node")
        bound = copy.deepcopy(pod)
        bound["spec"]["nodeName"] = binding["target"]["name"]
        bound["metadata"].setdefault("annotations", {}).update(binding["metadata"].get("annotations", {}))
        self.put(PODS, bound)
        return None

    def _tick(self) -> int:
        self.version += 1
        return self.version

    def _record(self, collection: str, before: Json | None, after: Json) -> None:
        was, is_now = before is not None and _visible(collection, before), _visible(collection, after)
        if is_now:
            self._add(collection, "MODIFIED" if was else "ADDED", after)
        elif was:
            self._add(collection, "DELETED", after)

    def _add(self, collection: str, kind: str, item: Json) -> None:
        self._log.append((self.version, collection, {"type": kind, "object": copy.deepcopy(item)}))


async def _answer(request: web.Request, answer: Answer) -> web.StreamResponse:
    response = await answer(request)
    assert response is not None
    return response


def _seen(request: web.Request) -> Seen:
    return Seen(
        request.method,
        request.path,
        dict(request.query),
        request.headers.get("Authorization", "").removeprefix("Bearer "),
        request.headers.get("Accept", ""),
    )


def _concerns(fault: _Fault, seen: Seen) -> bool:
    return (fault.method, fault.path, fault.watch) == (seen.method, seen.path, seen.is_watch)


def _key(item: Json) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _visible(collection: str, item: Json) -> bool:
    if collection != PODS:
        return True
    return bool(item["spec"].get("nodeName")) and item.get("status", {}).get("phase") not in FINISHED


@asynccontextmanager
async def fake_api() -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    fake.server = TestServer(fake.application())
    await fake.server.start_server(shutdown_timeout=0.1)
    try:
        yield fake
    finally:
        await fake.server.close()
