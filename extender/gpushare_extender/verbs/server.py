"""The extender's routes. Scheduler calls are answered with status 200, errors inside, as it expects."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import PodRequest
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_extender.bind.binder import Binder
from gpushare_extender.decide.fit.candidates import prioritize_nodes
from gpushare_extender.decide.fit.filter import FilterResult, Narrowing, filter_nodes
from gpushare_extender.decide.pod import KubePod
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.decide.preemption.queue import PreemptionQueue, Preemptor
from gpushare_extender.decide.waiting.offered_pods import OfferedPods
from gpushare_extender.decide.waiting.other_schedulers import is_name
from gpushare_extender.decide.waiting.sampled_pods import SampledPods
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.objects.pod_reference import PodReference
from gpushare_extender.preempt.node_pods import NodePodReader
from gpushare_extender.preempt.nominations import Nominations
from gpushare_extender.preempt.scheduler_victims import SchedulerVictims
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
MAX_SCHEDULERS = 64
"""Names that are remembered: a kube-scheduler has one for each of its profiles."""
NOMINATION_SECONDS = 1.0
"""In which the API server has to tell what ends on a nominated node: kube-scheduler waits for the answer."""


@dataclass(frozen=True, slots=True)
class ExtenderApi:
    """Answers every route from these."""

    ledger: Ledger
    binder: Binder
    health: HealthApi
    refused: UnschedulablePods = field(default_factory=UnschedulablePods)
    called: Callable[[int], None] = lambda _: None
    """Is told the port of every call that asks for nodes."""
    preemptors: PreemptionQueue = field(default_factory=PreemptionQueue, kw_only=True)
    ending: EndingPods = field(default_factory=EndingPods, kw_only=True)
    offered: OfferedPods = field(default_factory=OfferedPods, kw_only=True)
    """Is to be told by the binder of pods that are bound."""
    sampled: SampledPods = field(default_factory=SampledPods, kw_only=True)
    metrics: ExtenderMetrics = field(
        default_factory=lambda: ExtenderMetrics(CollectorRegistry()), kw_only=True
    )
    schedulers: set[str] = field(default_factory=set, kw_only=True)
    """By ``schedulerName``: those that have asked."""
    differing: Differing = field(default_factory=dict, kw_only=True)
    """By the extender's audit."""

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
        """Paths of the systems that we stand in for, each with the nodes of its dialect."""
        others = [each for each in DIALECTS.values() if each.inspect_path and each is not GPUSHARE]
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
        if args.node_names is not None:
            return _filter_result(result, node_names=result.passing)
        return _filter_result(result, nodes=NodeItems([items[name] for name in result.passing]))

    async def _unless_given_up(self, pod: KubePod, result: ExtenderFilterResult) -> Response:
        """Answers ``result`` of a pod that fits nowhere, or why it is not to be nominated any longer: an
        error of ours makes kube-scheduler take the nomination back, and try the pod again."""
        binder = self.binder
        reader = NodePodReader(binder.client, timeout=NOMINATION_SECONDS)
        nominations = Nominations(self.ledger, reader, self.ending, binder.timing.clock)
        message = await nominations.given_up(pod, self._request(pod))
        return _json(ExtenderFilterResult(error=message) if message else result)

    def _filter_names(self, names: list[str], pod: KubePod, *, client_authenticated: bool) -> FilterResult:
        request, uid, now = self._request(pod), pod.metadata.uid, self.binder.timing.clock()
        is_free = pod.prefers_nodes or self.offered.is_retry(uid, now=now)
        narrowing = None if is_free else Narrowing(pod.nominated_node)
        if len(self.schedulers) < MAX_SCHEDULERS and is_name(pod.spec.scheduler_name):
            self.schedulers.add(pod.spec.scheduler_name)
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
            self.offered.offered_some(uid, offered=len(result.passing), now=now)
        if result.passing:
            resources = self.ledger.resources if client_authenticated else None
            self.binder.expected.put(uid, request, authenticated=resources, version=version)
            self.refused.settled(uid)
            self.metrics.fits(uid)
            self.preemptors.settled(uid)
            self.sampled.settled(uid)
        elif request.resources:
            self.metrics.refused(uid, result.kinds)
            self._wait(uid, request, result)
            self._remember(pod, request, names, result)
            return self.sampled.searched(
                result, ledger=self.ledger, uid=uid, request=request, names=names, now=now
            )
        return result

    def _wait(self, uid: str, request: PodRequest, result: FilterResult) -> None:
        """The pod is tried again once there is room for it. Where the pod itself is the reason, that would be
        of no use: kube-scheduler tries it again when it is changed."""
        if result.is_for_good:
            self.refused.settled(uid)
        else:
            self.refused.refused(uid, request)

    def _remember(self, pod: KubePod, request: PodRequest, names: list[str], result: FilterResult) -> None:
        """Whether others may be evicted for the pod is looked at when kube-scheduler had its turn."""
        if pod.may_preempt and result.failed:
            nodes = tuple(map(sys.intern, result.failed))
            preemptor = Preemptor(pod.reference, request, pod.priority, nodes, len(names))
            self.preemptors.refused(preemptor, now=self.binder.timing.clock())

    def _request(self, pod: KubePod) -> PodRequest:
        """Returns what the caller says that the pod requests: good for an answer, not for a bind."""
        return pod.request(self.ledger.resources)

    def prioritize(self, request: Request) -> Response:
        """Status 400 makes the scheduler go on without scores: a worse node beats no node.

        No node is better for a pod that says itself which ones are.
        """
        try:
            args = EXTENDER_ARGS.decode(request.content)
            names = args.node_names if args.node_names is not None else list(_named(args.nodes))
        except UNREADABLE_JSON as error:
            return error_response(f"not the arguments of a prioritize: {error}", 400)
        if args.pod is None:
            return error_response("not the arguments of a prioritize: no Pod", 400)
        self.offered.proceeded(args.pod.metadata.uid)
        asked = self._request(args.pod)
        has_say = asked.resources and not args.pod.prefers_nodes
        scores = prioritize_nodes(self.ledger, names, asked) if has_say else dict.fromkeys(names, 0)
        return _json([HostPriority(name, score) for name, score in scores.items()])

    async def preempt(self, request: Request) -> Response:
        """Any other status than 200 makes the scheduler give up preempting for this attempt."""
        try:
            args = PREEMPTION_ARGS.decode(request.content)
        except UNREADABLE_JSON as error:
            return error_response(f"not the arguments of a preempt: {error}", 400)
        if args.pod is None:
            return error_response("not the arguments of a preempt: no Pod", 400)
        if message := self.health.not_listed():
            return error_response(message, 503)
        uid, now = args.pod.metadata.uid, self.binder.timing.clock()
        if self.offered.has_others(uid, now=now) or self.sampled.is_to_try_again(uid, now=now):
            return _json(preemption_result({}))  # it fits nodes that it was not offered at this attempt
        return _json(preemption_result(await self._victims.complete(args.pod, args.proposals())))

    @property
    def _victims(self) -> SchedulerVictims:
        binder = self.binder
        return SchedulerVictims(
            self.ledger, NodePodReader(binder.client), self.preemptors, self.ending, binder.timing.clock
        )

    async def bind(self, request: Request) -> Response:
        try:
            args = BINDING_ARGS.decode(request.content)
        except UNREADABLE_JSON as error:
            return _json(ExtenderBindingResult(f"not the arguments of a bind: {error}"))
        pod = PodReference(args.pod_namespace, args.pod_name, args.pod_uid)
        self.offered.proceeded(pod.uid)
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
        """An error is a field of the answer, as it was with the system: its tools look there."""
        return _json(inspect_dialect(self.ledger, dialect, request.name))

    async def version(self, _: Request) -> Response:
        return Response(VERSION.encode(), content_type="text/plain; charset=utf-8")


def handler(api: ExtenderApi) -> Handler:
    return api.metrics.measured(Routes(api.routes()).respond)


def application(api: ExtenderApi, *, max_request: int = MAX_REQUEST) -> web.Application:
    return http1.application(handler(api), max_request=max_request)


def _named(nodes: NodeItems | None) -> dict[str, msgspec.Raw]:
    """Returns whole nodes by their names."""
    items = nodes.items if nodes else None
    return {NAMED_NODE.decode(item).metadata.name: item for item in items or ()}


def _is_empty(result: ExtenderFilterResult) -> bool:
    """Returns whether no node passes."""
    return not (result.error or result.node_names or (result.nodes and result.nodes.items))


def _filter_result(
    result: FilterResult, *, node_names: list[str] | None = None, nodes: NodeItems | None = None
) -> ExtenderFilterResult:
    return ExtenderFilterResult(
        node_names=node_names,
        nodes=nodes,
        failed_nodes=result.failed,
        failed_and_unresolvable_nodes=result.unresolvable,
    )
