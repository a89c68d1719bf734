"""The extender's routes. Scheduler calls are answered with status 200, errors inside, as it expects."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.bind.binder import Binder
from gpushare_extender.decide.filter import FilterResult, filter_nodes
from gpushare_extender.decide.pod import Pod
from gpushare_extender.decide.prioritize import prioritize_nodes
from gpushare_extender.decide.refused_pods import RefusedPods
from gpushare_extender.http.connection import Handler, read_in_time
from gpushare_extender.http.health import HealthApi
from gpushare_extender.http.health import json_response as _json
from gpushare_extender.http.inspection import inspect_all, inspect_node
from gpushare_extender.http.wire import (
    BINDING_ARGS,
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

LARGEST_REQUEST = 4 * 2**20
"""Bytes: the names of 5,000 nodes are 0.2 MiB, and a pod is at most 1.5."""

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExtenderApi:
    """Answers every route from these."""

    ledger: Ledger
    binder: Binder
    dialect: Dialect
    health: HealthApi
    refused: RefusedPods = field(default_factory=RefusedPods)
    called: Callable[[int], None] = lambda _: None
    """Is told the port of every call that asks for nodes."""

    def routes(self) -> list[web.RouteDef]:
        inspect = self.dialect.inspect_path
        return [
            web.post("/gpushare/filter", self.filter),
            web.post("/gpushare/prioritize", self.prioritize),
            web.post("/gpushare/bind", self.bind),
            web.get(inspect, self.inspect),
            web.get(inspect + "/{node}", self.inspect_node),
            *self.health.routes(),
        ]

    async def filter(self, request: web.Request) -> web.Response:
        try:
            args = EXTENDER_ARGS.decode(await request.read())
            self.called(_port(request))
            return _json(self._filter(args))
        except _UNREADABLE as error:
            return _json(ExtenderFilterResult(error=f"not the arguments of a filter: {error}"))

    def _filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        if args.pod is None:
            return ExtenderFilterResult(error="not the arguments of a filter: no Pod")
        if message := self.health.not_listed():
            return ExtenderFilterResult(error=message)
        asked = self._request(args.pod)
        uid = args.pod.metadata.uid
        if args.node_names is not None:
            result = self._filter_names(args.node_names, uid=uid, request=asked)
            return _filter_result(result, node_names=result.passing)
        return self._filter_items(args.nodes or NodeItems(), uid=uid, request=asked)

    def _filter_items(self, nodes: NodeItems, *, uid: str, request: PodRequest) -> ExtenderFilterResult:
        """For a scheduler that sends whole nodes, and takes whole nodes for an answer."""
        items = _named(nodes)
        result = self._filter_names(list(items), uid=uid, request=request)
        return _filter_result(result, nodes=NodeItems([items[name] for name in result.passing]))

    def _filter_names(self, names: list[str], *, uid: str, request: PodRequest) -> FilterResult:
        result = filter_nodes(self.ledger, names, uid=uid, request=request)
        if result.passing:
            self.refused.settled(uid)
        elif request.single:
            self.refused.refused(uid, request.single)
        return result

    def _request(self, pod: Pod) -> PodRequest:
        """Returns what the caller says that the pod requests: good for an answer, not for a bind."""
        return pod.request(self.dialect.resources)

    async def prioritize(self, request: web.Request) -> web.Response:
        """Status 400 makes the scheduler go on without scores: a worse node beats no node."""
        try:
            args = EXTENDER_ARGS.decode(await request.read())
            names = args.node_names if args.node_names is not None else list(_named(args.nodes))
        except _UNREADABLE as error:
            return _json({"error": f"not the arguments of a prioritize: {error}"}, status=400)
        if args.pod is None:
            return _json({"error": "not the arguments of a prioritize: no Pod"}, status=400)
        asked = self._request(args.pod).single
        scores = prioritize_nodes(self.ledger, names, asked) if asked else dict.fromkeys(names, 0)
        return _json([HostPriority(name, score) for name, score in scores.items()])

    async def bind(self, request: web.Request) -> web.Response:
        try:
            args = BINDING_ARGS.decode(await request.read())
        except _UNREADABLE as error:
            return _json(ExtenderBindingResult(f"not the arguments of a bind: {error}"))
        pod = PodReference(args.pod_namespace, args.pod_name, args.pod_uid)
        return _json(
            ExtenderBindingResult(self.health.not_listed() or await self.binder.bind(pod, args.node))
        )

    async def inspect(self, _: web.Request) -> web.Response:
        return _json(inspect_all(self.ledger))

    async def inspect_node(self, request: web.Request) -> web.Response:
        name = request.match_info["node"]
        if view := inspect_node(self.ledger, name):
            return _json(view)
        return _json({"error": f"node {name} does not share GPU cards"}, status=404)


def _port(request: web.Request) -> int:
    """Returns where the call came in."""
    address = request.transport.get_extra_info("sockname") if request.transport else None
    return int(address[1]) if address else 0


def application(api: ExtenderApi, *, largest_request: int = LARGEST_REQUEST) -> web.Application:
    app = web.Application(client_max_size=largest_request, middlewares=[_errors_as_json, read_in_time])
    app.add_routes(api.routes())
    return app


def health_application(health: HealthApi) -> web.Application:
    """For a port that everybody on the host may ask: one short question a connection."""
    app = web.Application(client_max_size=1024, middlewares=[_then_closed, _errors_as_json, read_in_time])
    app.add_routes(health.routes())
    return app


@web.middleware
async def _then_closed(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    response.force_close()
    return response


@web.middleware
async def _errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers with status 500 where a defect of ours would break the connection."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        return _json({"error": f"{error.text}: is nodeCacheCapable set for this extender?"}, status=413)
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
