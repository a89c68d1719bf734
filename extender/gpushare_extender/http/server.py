"""The extender's routes. Scheduler calls are answered with status 200, errors inside, as it expects."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from gpushare_core.books.dialects import Dialect
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import DEAD_SECONDS, WatchHealth
from gpushare_extender.decide.filter import FilterResult, filter_nodes
from gpushare_extender.decide.pod import Pod
from gpushare_extender.decide.prioritize import prioritize_nodes
from gpushare_extender.decide.request_cache import RequestCache
from gpushare_extender.http.inspection import inspect_all, inspect_node
from gpushare_extender.http.wire import (
    BINDING_ARGS,
    ENCODER,
    EXTENDER_ARGS,
    NAMED_NODE,
    ExtenderArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    HostPriority,
    NodeItems,
)
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.pod_reference import PodReference

LARGEST_REQUEST = 128 * 2**20
"""Bytes: 5,000 whole Node objects, from a scheduler without nodeCacheCapable, are about 50 MiB."""
KEEP_ALIVE = 180.0
"""Seconds. Longer than the scheduler's own 90, so that it never sends into a connection just closed here."""

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)
_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class ExtenderApi:
    """Answers every route from these."""

    ledger: Ledger
    requests: RequestCache
    binder: Binder
    dialect: Dialect
    watches: tuple[WatchHealth, ...]

    def routes(self) -> list[web.RouteDef]:
        inspect = self.dialect.inspect_path
        return [
            web.post("/gpushare/filter", self.filter),
            web.post("/gpushare/prioritize", self.prioritize),
            web.post("/gpushare/bind", self.bind),
            web.get(inspect, self.inspect),
            web.get(inspect + "/{node}", self.inspect_node),
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
        ]

    async def filter(self, request: web.Request) -> web.Response:
        try:
            args = EXTENDER_ARGS.decode(await request.read())
            return _json(self._filter(args))
        except _UNREADABLE as error:
            return _json(ExtenderFilterResult(error=f"not the arguments of a filter: {error}"))

    def _filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        if args.pod is None:
            return ExtenderFilterResult(error="not the arguments of a filter: no Pod")
        if message := self._not_ready():
            return ExtenderFilterResult(error=message)
        units = self._read_request(args.pod).total
        uid = args.pod.metadata.uid
        if args.node_names is not None:
            result = filter_nodes(self.ledger, args.node_names, uid=uid, units=units)
            return _filter_result(result, node_names=result.passing)
        return self._filter_items(args.nodes or NodeItems(), uid=uid, units=units)

    def _filter_items(self, nodes: NodeItems, *, uid: str, units: int) -> ExtenderFilterResult:
        """For a scheduler that sends whole nodes, and takes whole nodes for an answer."""
        items = _named(nodes)
        result = filter_nodes(self.ledger, list(items), uid=uid, units=units)
        return _filter_result(result, nodes=NodeItems([items[name] for name in result.passing]))

    def _read_request(self, pod: Pod) -> PodRequest:
        """Returns what the pod requests, and keeps it for the pod's bind."""
        request = pod.request(self.dialect.memory_resource)
        if pod.metadata.uid and request.total:
            self.requests.put(pod.metadata.uid, request)
        return request

    async def prioritize(self, request: web.Request) -> web.Response:
        """Status 400 makes the scheduler go on without scores: a worse node beats no node."""
        try:
            args = EXTENDER_ARGS.decode(await request.read())
            names = args.node_names if args.node_names is not None else list(_named(args.nodes))
        except _UNREADABLE as error:
            return _json({"error": f"not the arguments of a prioritize: {error}"}, status=400)
        if args.pod is None:
            return _json({"error": "not the arguments of a prioritize: no Pod"}, status=400)
        scores = prioritize_nodes(self.ledger, names, units=self._read_request(args.pod).total)
        return _json([HostPriority(name, score) for name, score in scores.items()])

    async def bind(self, request: web.Request) -> web.Response:
        try:
            args = BINDING_ARGS.decode(await request.read())
        except _UNREADABLE as error:
            return _json(ExtenderBindingResult(f"not the arguments of a bind: {error}"))
        pod = PodReference(args.pod_namespace, args.pod_name, args.pod_uid)
        return _json(ExtenderBindingResult(self._not_ready() or await self.binder.bind(pod, args.node)))

    async def inspect(self, _: web.Request) -> web.Response:
        return _json(inspect_all(self.ledger))

    async def inspect_node(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        if view := inspect_node(self.ledger, name):
            return _json(view)
        return _json({"error": f"node {name} does not share GPU cards"}, status=404)

    async def healthz(self, _: web.Request) -> web.Response:
        """503 when a watch has been stuck for so long that only a restart can help."""
        silence = {watch.collection: round(watch.silence, 1) for watch in self.watches}
        dead = any(watch.silence > DEAD_SECONDS for watch in self.watches)
        return _json({"ok": not dead, "secondsSinceLastSign": silence}, status=503 if dead else 200)

    async def readyz(self, _: web.Request) -> web.Response:
        message = self._not_ready()
        return _json({"ok": not message, "missing": message}, status=503 if message else 200)

    def _not_ready(self) -> str:
        """Returns why nothing can be answered yet, or an empty text.

        Before the ledger is complete an answer could over-commit a card.
        """
        unlisted = [watch.collection for watch in self.watches if not watch.listed]
        return f"the extender has not read all {' and '.join(unlisted)} yet" if unlisted else ""


def application(api: ExtenderApi) -> web.Application:
    app = web.Application(client_max_size=LARGEST_REQUEST, middlewares=[_errors_as_json])
    app.add_routes(api.routes())
    return app


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers with status 500 where a defect of ours would break the connection."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _json({"error": error.reason}, status=error.status)
    except Exception as error:
        _log.exception("%s %s failed", request.method, request.path)
        return _json({"error": f"internal error of the extender: {error!r}"}, status=500)


def _named(nodes: NodeItems | None) -> dict[str, msgspec.Raw]:
    """Returns whole nodes by their names."""
    items = nodes.items if nodes else None
    return {NAMED_NODE.decode(item).metadata.name: item for item in items or ()}


def _filter_result(
    result: FilterResult, *, node_names: list[str] | None = None, nodes: NodeItems | None = None
) -> ExtenderFilterResult:
    return ExtenderFilterResult(
        node_names=node_names,
        nodes=nodes,
        failed_nodes=result.failed,
        failed_and_unresolvable_nodes=result.unresolvable,
    )


def _json(answer: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=ENCODER.encode(answer), status=status, content_type="application/json")
