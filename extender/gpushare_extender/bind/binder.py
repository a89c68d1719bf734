"""The bind verb: chooses a card, reserves its units, writes the Binding, and books the outcome."""

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from gpushare_core.books.dialects import Dialect
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.bind.binding import Binding, allocation_of, share_binding
from gpushare_extender.bind.binding_write import BindingWrite, NotBoundError
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.pod import Pod
from gpushare_extender.decide.request_cache import RequestCache
from gpushare_extender.ledger.holder import Holder
from gpushare_extender.ledger.ledger import DoesNotFitError, Ledger
from gpushare_extender.ledger.pod_reference import PodReference

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BindTask:
    """A bind under way. Its result is an error message, empty on success."""

    node: str
    task: "asyncio.Task[str]"


@dataclass(slots=True)
class Binder:
    """Binds pods, each in one task at a time.

    A task goes on when its caller has given up: units stay reserved until the API server has said whether
    the pod is bound.
    """

    client: KubeClient
    ledger: Ledger
    requests: RequestCache
    dialect: Dialect
    timing: BindTiming = field(default_factory=BindTiming)
    _tasks: dict[str, BindTask] = field(default_factory=dict, init=False)
    """By pod UID."""

    async def bind(self, pod: PodReference, node: str) -> str:
        """Binds ``pod`` to ``node``. Returns an error message, empty on success.

        Never raises for what others do.
        """
        if not (pod.uid and pod.name and pod.namespace and node):
            return "a bind needs PodName, PodNamespace, PodUID and Node"
        bind_task = self._tasks.get(pod.uid) or self._start(pod, node)
        done, _ = await asyncio.wait({bind_task.task}, timeout=self.timing.answer_within)
        if not done:
            return f"the API server has not told yet whether the pod is bound to node {bind_task.node}"
        if bind_task.node != node and not bind_task.task.result():
            return f"the pod is bound to node {bind_task.node} already"
        return bind_task.task.result()

    def pods_being_bound(self) -> Collection[str]:
        """Returns the UIDs of the pods whose bind tasks have not ended."""
        return self._tasks.keys()

    async def drain(self, seconds: float) -> int:
        """Waits for the bind tasks to end. Returns how many did not end in time."""
        tasks = {bind_task.task for bind_task in self._tasks.values()}
        if not tasks:
            return 0
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        return len(pending)

    def _start(self, pod: PodReference, node: str) -> BindTask:
        bind_task = BindTask(node, asyncio.create_task(self._run(pod, node)))
        self._tasks[pod.uid] = bind_task
        bind_task.task.add_done_callback(lambda _: self._tasks.pop(pod.uid, None))
        return bind_task

    async def _run(self, pod: PodReference, node: str) -> str:
        extra = {"pod": str(pod), "node": node}
        try:
            await self._bind(pod, node)
        except NotBoundError as error:
            _log.info("not bound: %s", error, extra=extra)
            return str(error)
        except Exception as error:
            # The units stay reserved: whether the pod is bound is not known.
            _log.exception("bind failed", extra=extra)
            return f"internal error of the extender: {error!r}"
        _log.info("bound", extra=extra)
        return ""

    async def _bind(self, pod: PodReference, node: str) -> None:
        holder = self.ledger.holder(pod.uid)
        if holder and holder.node != node:
            raise NotBoundError(f"the pod already holds GPU memory on node {holder.node}")
        if holder and not self.ledger.is_unconfirmed(pod.uid):
            return
        request = self.requests.get(pod.uid) or await self._read_request(pod)
        if request.total:
            await self._bind_with_share(pod, node, request)
        else:
            await self._write(Binding(pod, node, {}))
        self.requests.drop(pod.uid)

    async def _read_request(self, pod: PodReference) -> PodRequest:
        path = pod_path(pod.namespace, pod.name)
        try:
            present = await self.client.read(Request(path=path), shape=Pod)
        except (ApiError, UnreachableError) as error:
            raise NotBoundError(f"cannot read the pod to learn what it asks for: {error}") from error
        if present.metadata.uid != pod.uid:
            raise NotBoundError("the pod is gone: another one has its name now")
        return present.request(self.dialect.memory_resource)

    async def _bind_with_share(self, pod: PodReference, node: str, request: PodRequest) -> None:
        holder = self.ledger.holder(pod.uid) or self._reserve(pod, node, request.total)
        unit = self.ledger.unit_in_force(node)
        allocation = allocation_of(holder, request, unit=unit, now=self.timing.now())
        try:
            await self._write(share_binding(pod, allocation, annotation=self.dialect.allocation_annotation))
        except NotBoundError:
            self.ledger.release(pod.uid)
            raise
        self.ledger.confirm(pod.uid, now=self.timing.clock())

    def _reserve(self, pod: PodReference, node: str, units: int) -> Holder:
        """Choosing and reserving are one step: no await may come between them."""
        try:
            return self.ledger.reserve(pod, node=node, units=units)
        except DoesNotFitError as error:
            raise NotBoundError(str(error)) from error

    async def _write(self, binding: Binding) -> None:
        await BindingWrite(self.client, binding, self.timing).ensure_bound()
