"""Binding pods: choose, reserve, deliver, and book what came of it."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from gpushare_core.books.dialects import Dialect
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_extender.bind.binding import Order, allocation_of, granted, pod_path
from gpushare_extender.bind.delivery import Delivery, RefusedError, Times
from gpushare_extender.decide.requests import NeedsMemory, PodNeeds, read_needs
from gpushare_extender.http.wire import BindArgs, Pod
from gpushare_extender.ledger.holder import Holding
from gpushare_extender.ledger.ledger import Ledger, NoRoomError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Flight:
    """One bind under way."""

    node: str
    task: "asyncio.Task[str]"


@dataclass(slots=True)
class Binder:
    """Binds pods, one flight per pod at a time.

    A flight goes on when its caller has given up: units stay reserved until the API server has told whether
    the pod was bound.
    """

    client: KubeClient
    ledger: Ledger
    memory: NeedsMemory
    dialect: Dialect
    times: Times = field(default_factory=Times)
    _flights: dict[str, _Flight] = field(default_factory=dict, init=False)

    async def bind(self, args: BindArgs) -> str:
        """Bind the pod; the answer is empty on success, else why not. Never raises for what others do."""
        if not (args.pod_uid and args.pod_name and args.pod_namespace and args.node):
            return "a bind needs PodName, PodNamespace, PodUID and Node"
        flight = self._flights.get(args.pod_uid) or self._depart(args)
        done, _ = await asyncio.wait({flight.task}, timeout=self.times.answer_within)
        if not done:
            return f"the API server has not told yet whether the pod is bound to node {flight.node}"
        if flight.node != args.node and not flight.task.result():
            return f"the pod is bound to node {flight.node} already"
        return flight.task.result()

    def under_way(self) -> Collection[str]:
        """UIDs of the pods whose binds have not ended."""
        return self._flights.keys()

    async def drain(self, seconds: float) -> int:
        """Wait for the flights under way; return how many did not end in time."""
        tasks = {flight.task for flight in self._flights.values()}
        if not tasks:
            return 0
        _, under_way = await asyncio.wait(tasks, timeout=seconds)
        return len(under_way)

    def _depart(self, args: BindArgs) -> _Flight:
        flight = _Flight(args.node, asyncio.create_task(self._fly(args)))
        self._flights[args.pod_uid] = flight
        flight.task.add_done_callback(lambda _: self._flights.pop(args.pod_uid, None))
        return flight

    async def _fly(self, args: BindArgs) -> str:
        extra = {"pod": f"{args.pod_namespace}/{args.pod_name}", "node": args.node}
        try:
            await self._bind(args)
        except RefusedError as error:
            _log.info("not bound: %s", error, extra=extra)
            return str(error)
        except Exception as error:
            # The units stay reserved: whether the pod is bound is not known.
            _log.exception("bind failed", extra=extra)
            return f"internal error of the extender: {error!r}"
        _log.info("bound", extra=extra)
        return ""

    async def _bind(self, args: BindArgs) -> None:
        held = self.ledger.holding(args.pod_uid)
        if held and held.node != args.node:
            raise RefusedError(f"the pod already holds GPU memory on node {held.node}")
        if held and not self.ledger.is_in_flight(args.pod_uid):
            return
        needs = self.memory.recall(args.pod_uid) or await self._ask_needs(args)
        if needs.units.total:
            await self._bind_with_share(args, needs)
        else:
            await Delivery(self.client, Order(args, {}), self.times).settle()
        self.memory.forget(args.pod_uid)

    async def _ask_needs(self, args: BindArgs) -> PodNeeds:
        try:
            pod = await self.client.read(Request(path=pod_path(args.pod_namespace, args.pod_name)), shape=Pod)
        except (ApiError, UnreachableError) as error:
            raise RefusedError(f"cannot read the pod to learn what it asks for: {error}") from error
        if pod.metadata.uid != args.pod_uid:
            raise RefusedError("the pod is gone: another one has its name now")
        return read_needs(pod.spec, resource=self.dialect.memory_resource)

    async def _bind_with_share(self, args: BindArgs, needs: PodNeeds) -> None:
        holding = self.ledger.holding(args.pod_uid) or self._reserve(args, needs.units.total)
        try:
            await Delivery(self.client, self._order(args, holding, needs), self.times).settle()
        except RefusedError:
            self.ledger.release(args.pod_uid)
            raise
        self.ledger.confirm(args.pod_uid, now=self.times.clock())

    def _reserve(self, args: BindArgs, units: int) -> Holding:
        """Choosing and reserving are one step: no await may come between them."""
        try:
            return self.ledger.reserve(
                uid=args.pod_uid,
                namespace=args.pod_namespace,
                name=args.pod_name,
                node=args.node,
                units=units,
            )
        except NoRoomError as error:
            raise RefusedError(str(error)) from error

    def _order(self, args: BindArgs, holding: Holding, needs: PodNeeds) -> Order:
        unit = self.ledger.unit_in_force(args.node)
        allocation = allocation_of(holding, needs, unit=unit, now=self.times.now())
        return granted(args, allocation, annotation=self.dialect.allocation_annotation)
