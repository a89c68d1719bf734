"""The extender's routes. kube-scheduler expects status 200 and errors inside the response."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec
from aiohttp import web

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest
from gpushare_core.process.version import VERSION
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import FilterResult, Narrowing, filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_extender.bind.binder import Binder
from gpushare_extender.decide.attempts import SchedulingAttempts
from gpushare_extender.evictions.nominations import Nominations
from gpushare_extender.evictions.scheduler_victims import SchedulerVictims
from gpushare_extender.transport import http1
from gpushare_extender.transport.messages import Handler, Request, Response, error_response
from gpushare_extender.transport.messages import json_response as _json
from gpushare_extender.verbs.dialect_inspection import inspect_dialect
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.inspection import Differing, inspect_all, inspect_node
from gpushare_extender.verbs.metrics import ExtenderMetrics
from gpushare_extender.verbs.routes import Route, Routes
from gpushare_extender.verbs.wire import (
    BINDING_ARGS,
    EXTENDER_ARGS,
    NAMED_NODE,
    PREEMPTION_ARGS,
    ExtenderArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    HostPriority,
    NodeItems,
    preemption_result,
)

MAX_REQUEST = 4 * 2**20
"""Bytes: the names of 5,000 nodes are 0.2 MiB, and a pod is at most 1.5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderApi:
    ledger: Ledger
    binder: Binder
    health: HealthApi
    attempts: SchedulingAttempts
    victims: SchedulerVictims
    nominations: Nominations
    metrics: ExtenderMetrics
    called: Callable[[int], None] = lambda _: None
    """Called with the port of every filter request."""
    differing: Differing = field(default_factory=dict)
    """What the extender's audit has found."""

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/gpushare/filter", self.filter),
            Route("POST", "/gpushare/prioritize", self.prioritize),
            Route("POST", "/gpushare/preempt", self.preempt),
            Route("POST", "/gpushare/bind", self.bind),
            Route("GET", GPUSHARE.inspect_path, self.inspect),
            Route("GET", GPUSHARE.inspect_path + "/", self.inspect_node),
            *self._dialect_routes(),
            *self.health.routes(),
        ]

    def _dialect_routes(self) -> list[Route]:
        """Paths of the replaced systems, each with the nodes of its dialect."""
        others = [other for other in DIALECTS.values() if other.inspect_path and other is not GPUSHARE]
        versions = {other.version_path for other in others} - {""}
        return [
            *(Route("GET", other.inspect_path, partial(self.inspect_dialect, other)) for other in others),
            *(
                Route("GET", other.inspect_path + "/", partial(self.inspect_dialect_node, other))
                for other in others
            ),
            *(Route("GET", path, self.version) for path in sorted(versions)),
        ]

    def filter(self, request: Request) -> Response | Awaitable[Response]:
        try:
            args = EXTENDER_ARGS.decode(request.content)
            self.called(request.port)
            result = self._filter(args, client_authenticated=request.client_authenticated)
        except UNREADABLE_JSON as error:
            return _json(ExtenderFilterResult(error=f"not the arguments of a filter: {error}"))
        if args.pod and args.pod.nominated_node and _is_empty(result):
            return self._unless_given_up(args.pod, result)
        return _json(result)

    def _filter(self, args: ExtenderArgs, *, client_authenticated: bool) -> ExtenderFilterResult:
        if args.pod is None:
            return ExtenderFilterResult(error="not the arguments of a filter: no Pod")
        if message := self.health.not_listed():
            return ExtenderFilterResult(error=message)
        items = _named(args.nodes) if args.node_names is None else {}
        result = self._filter_names(
            args.node_names or list(items), args.pod, client_authenticated=client_authenticated
        )
        names = result.passing if args.node_names is not None else None
        return ExtenderFilterResult(
            node_names=names,
            nodes=NodeItems([items[name] for name in result.passing]) if names is None else None,
            failed_nodes=result.failed,
            failed_and_unresolvable_nodes=result.unresolvable,
        )

    async def _unless_given_up(self, pod: KubePod, result: ExtenderFilterResult) -> Response:
        """Responds with ``result`` for a pod that fits nowhere, or with an error that says why the pod gives
        up its nomination: then kube-scheduler removes the nomination, and tries the pod again."""
        message = await self.nominations.given_up(pod, self._request(pod))
        return _json(ExtenderFilterResult(error=message) if message else result)

    def _filter_names(self, names: list[str], pod: KubePod, *, client_authenticated: bool) -> FilterResult:
        request, uid, now = self._request(pod), pod.metadata.uid, self.binder.timing.clock()
        narrowing = None if self.attempts.begin(pod, now=now) else Narrowing(pod.nominated_node)
        version = pod.version
        result = filter_nodes(
            self.ledger,
            names,
            uid=uid,
            request=request,
            annotations_size=version.annotations_size,
            narrowing=narrowing,
        )
        if result.left_out:
            self.attempts.offered.offered_some(uid, offered=len(result.passing), now=now)
        if result.passing:
            resources = self.ledger.resources if client_authenticated else None
            self.binder.expected.put(uid, request, authenticated=resources, version=version)
            self.attempts.fits(uid)
            self.metrics.fits(uid)
        elif request.resources:
            self.metrics.refused(uid, result.kinds)
            return self.attempts.fits_nowhere(pod, request, names, result, self.ledger, now)
        return result

    def _request(self, pod: KubePod) -> PodRequest:
        """Returns what the pod requests, as the client says it: good enough for a filter, not for a bind."""
        return pod.request(self.ledger.resources)

    def prioritize(self, request: Request) -> Response:
        """Status 400 makes kube-scheduler go on without scores: a worse node beats no node. All nodes score
        alike for a pod that has preferences of its own."""
        try:
            args = EXTENDER_ARGS.decode(request.content)
            names = args.node_names if args.node_names is not None else list(_named(args.nodes))
        except UNREADABLE_JSON as error:
            return error_response(f"not the arguments of a prioritize: {error}", 400)
        if args.pod is None:
            return error_response("not the arguments of a prioritize: no Pod", 400)
        self.attempts.offered.proceeded(args.pod.metadata.uid)
        asked = self._request(args.pod)
        has_scores = asked.resources and not args.pod.prefers_nodes
        scores = prioritize_nodes(self.ledger, names, asked) if has_scores else dict.fromkeys(names, 0)
        return _json([HostPriority(name, score) for name, score in scores.items()])

    async def preempt(self, request: Request) -> Response:
        """Any other status than 200 makes kube-scheduler preempt nothing in this attempt."""
        try:
            args = PREEMPTION_ARGS.decode(request.content)
        except UNREADABLE_JSON as error:
            return error_response(f"not the arguments of a preempt: {error}", 400)
        if args.pod is None:
            return error_response("not the arguments of a preempt: no Pod", 400)
        if message := self.health.not_listed():
            return error_response(message, 503)
        if self.attempts.fits_other_nodes(args.pod.metadata.uid, now=self.binder.timing.clock()):
            return _json(preemption_result({}))
        return _json(preemption_result(await self.victims.complete(args.pod, args.proposals())))

    async def bind(self, request: Request) -> Response:
        try:
            args = BINDING_ARGS.decode(request.content)
        except UNREADABLE_JSON as error:
            return _json(ExtenderBindingResult(f"not the arguments of a bind: {error}"))
        pod = PodReference(args.pod_namespace, args.pod_name, args.pod_uid)
        self.attempts.offered.proceeded(pod.uid)
        return _json(
            ExtenderBindingResult(self.health.not_listed() or await self.binder.bind(pod, args.node))
        )

    async def inspect(self, _: Request) -> Response:
        return _json(inspect_all(self.ledger, self.differing, self.binder.choices))

    async def inspect_node(self, request: Request) -> Response:
        name = request.name
        if view := inspect_node(self.ledger, name, self.differing.get(name, ()), self.binder.choices):
            return _json(view)
        return error_response(f"node {name} does not share GPU cards", 404)

    async def inspect_dialect(self, dialect: Dialect, _: Request) -> Response:
        return _json(inspect_dialect(self.ledger, dialect))

    async def inspect_dialect_node(self, dialect: Dialect, request: Request) -> Response:
        """An error is a field of the response, where the tools of the replaced system look for it."""
        return _json(inspect_dialect(self.ledger, dialect, request.name))

    async def version(self, _: Request) -> Response:
        return Response(VERSION.encode(), content_type="text/plain; charset=utf-8")


def handler(api: ExtenderApi) -> Handler:
    return api.metrics.measured(Routes(api.routes()).respond)


def application(api: ExtenderApi, *, max_request: int = MAX_REQUEST) -> web.Application:
    return http1.application(handler(api), max_request=max_request)


def _named(nodes: NodeItems | None) -> dict[str, msgspec.Raw]:
    """Returns node name -> the whole node."""
    items = nodes.items if nodes else None
    return {NAMED_NODE.decode(item).metadata.name: item for item in items or ()}


def _is_empty(result: ExtenderFilterResult) -> bool:
    return not (result.error or result.node_names or (result.nodes and result.nodes.items))
