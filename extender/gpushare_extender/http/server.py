"""The extender's HTTP face. Scheduler calls are answered with status 200, errors inside, as it expects."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from gpushare_core.books.dialects import Dialect
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import DEAD_AFTER, Watcher
from gpushare_extender.decide.filter import Sieve, filter_nodes
from gpushare_extender.decide.prioritize import prioritize_nodes
from gpushare_extender.decide.requests import NeedsMemory, read_needs
from gpushare_extender.http.inspection import inspect_all, inspect_node
from gpushare_extender.http.wire import (
    BIND_ARGS,
    ENCODER,
    FILTER_ARGS,
    NAMED_NODE,
    BindResult,
    FilterArgs,
    FilterResult,
    HostPriority,
    NodeItems,
    Pod,
)
from gpushare_extender.ledger.ledger import Ledger

LARGEST_REQUEST = 128 * 2**20
"""Bytes: 5,000 whole Node objects, from a scheduler without nodeCacheCapable, are about 50 MiB."""
KEEP_ALIVE = 180.0
"""Seconds. Longer than the scheduler's own 90, so that it never sends into a connection just closed here."""

_DEFECTS = (msgspec.DecodeError, RecursionError, UnicodeError)
_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Extender:
    """What the routes answer from."""

    ledger: Ledger
    memory: NeedsMemory
    binder: Binder
    dialect: Dialect
    watchers: tuple[Watcher, ...]

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
            args = FILTER_ARGS.decode(await request.read())
            return _json(self._filter(args))
        except _DEFECTS as error:
            return _json(FilterResult(error=f"not the arguments of a filter: {error}"))

    def _filter(self, args: FilterArgs) -> FilterResult:
        if args.pod is None:
            return FilterResult(error="not the arguments of a filter: no Pod")
        if missing := self._missing():
            return FilterResult(error=missing)
        units = self._note_needs(args.pod)
        uid = args.pod.metadata.uid
        if args.node_names is not None:
            sieve = filter_nodes(self.ledger, args.node_names, uid=uid, units=units)
            return _result(sieve, node_names=sieve.passing)
        return self._filter_items(args.nodes or NodeItems(), uid=uid, units=units)

    def _filter_items(self, nodes: NodeItems, *, uid: str, units: int) -> FilterResult:
        """For a scheduler that sends whole nodes, and takes whole nodes for an answer."""
        items = _named(nodes)
        sieve = filter_nodes(self.ledger, list(items), uid=uid, units=units)
        return _result(sieve, nodes=NodeItems([items[name] for name in sieve.passing]))

    def _note_needs(self, pod: Pod) -> int:
        """Units that the pod asks for; its bind, which only names it, finds them again."""
        needs = read_needs(pod.spec, resource=self.dialect.memory_resource)
        if pod.metadata.uid and needs.units.total:
            self.memory.remember(pod.metadata.uid, needs)
        return needs.units.total

    async def prioritize(self, request: web.Request) -> web.Response:
        """Status 400 makes the scheduler go on without scores: a worse node beats no node."""
        try:
            args = FILTER_ARGS.decode(await request.read())
            names = args.node_names if args.node_names is not None else list(_named(args.nodes))
        except _DEFECTS as error:
            return _json({"error": f"not the arguments of a prioritize: {error}"}, status=400)
        if args.pod is None:
            return _json({"error": "not the arguments of a prioritize: no Pod"}, status=400)
        scores = prioritize_nodes(self.ledger, names, units=self._note_needs(args.pod))
        return _json([HostPriority(name, score) for name, score in scores.items()])

    async def bind(self, request: web.Request) -> web.Response:
        try:
            args = BIND_ARGS.decode(await request.read())
        except _DEFECTS as error:
            return _json(BindResult(f"not the arguments of a bind: {error}"))
        return _json(BindResult(self._missing() or await self.binder.bind(args)))

    async def inspect(self, _: web.Request) -> web.Response:
        return _json(inspect_all(self.ledger))

    async def inspect_node(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        if view := inspect_node(self.ledger, name):
            return _json(view)
        return _json({"error": f"node {name} does not share GPU cards"}, status=404)

    async def healthz(self, _: web.Request) -> web.Response:
        """503 when a watcher has been stuck for so long that only a restart can help."""
        silence = {watcher.what: round(watcher.silence, 1) for watcher in self.watchers}
        dead = any(watcher.silence > DEAD_AFTER for watcher in self.watchers)
        return _json({"ok": not dead, "secondsSinceLastSign": silence}, status=503 if dead else 200)

    async def readyz(self, _: web.Request) -> web.Response:
        missing = self._missing()
        return _json({"ok": not missing, "missing": missing}, status=503 if missing else 200)

    def _missing(self) -> str:
        """Empty once the books are complete: an earlier answer could over-commit a card."""
        unlisted = [watcher.what for watcher in self.watchers if not watcher.listed]
        return f"the extender has not read all {' and '.join(unlisted)} yet" if unlisted else ""


def application(extender: Extender) -> web.Application:
    app = web.Application(client_max_size=LARGEST_REQUEST, middlewares=[_without_crashes])
    app.add_routes(extender.routes())
    return app


@web.middleware
async def _without_crashes(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _json({"error": error.reason}, status=error.status)
    except Exception as error:
        _log.exception("%s %s failed", request.method, request.path)
        return _json({"error": f"internal error of the extender: {error!r}"}, status=500)


def _named(nodes: NodeItems | None) -> dict[str, msgspec.Raw]:
    """Whole nodes by their names."""
    items = nodes.items if nodes else None
    return {NAMED_NODE.decode(item).metadata.name: item for item in items or ()}


def _result(
    sieve: Sieve, *, node_names: list[str] | None = None, nodes: NodeItems | None = None
) -> FilterResult:
    return FilterResult(
        node_names=node_names,
        nodes=nodes,
        failed_nodes=sieve.failed,
        failed_and_unresolvable_nodes=sieve.unresolvable,
    )


def _json(answer: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=ENCODER.encode(answer), status=status, content_type="application/json")
