"""The bind verb: chooses a card, reserves its units, writes the Binding, and records the outcome."""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpushare_core.dialects.table import ASKED_RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.placement.card_choice import ChoiceReason
from gpushare_core.placement.modes.table import unservable_reason
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.ledger.reservations import BindState, Reservation
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNode
from gpushare_extender.bind.binding import Binding, allocation_of, share_binding
from gpushare_extender.bind.binding_write import BindingWrite, BoundBeforeError, NotBoundError
from gpushare_extender.bind.deadlines import CALL_SECONDS, BindTiming
from gpushare_extender.decide.remembered_pods import RememberedPods
from gpushare_extender.decide.waiting.expected_requests import ExpectedRequest, ExpectedRequests, is_same

PARALLEL_BINDS = 200
"""Each has its own connection to the API server: kube-scheduler sends a burst of binds at once, and a bind
that waits for a connection uses up its caller's timeout."""

MAX_CHOICES = 2048
"""Pods whose reasons are remembered. Each takes about 0.4 KiB."""
FROM_CACHE = {"resourceVersion": "0"}
"""Any version will do."""

_log = logging.getLogger(__name__)


class BindResult(StrEnum):
    BOUND = "Bound"
    REFUSED = "Refused"
    """The pod does not fit any more, or is gone, or the API server refuses."""
    NO_LEASE = "NoLease"
    """Another extender may be binding."""
    DEFECT = "Error"


@dataclass(frozen=True, slots=True)
class BindTask:
    node: str
    task: "asyncio.Task[str]"
    """Its result is an error message, empty on success."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What is reserved for a pod before the API server says what the pod asks for."""

    reservation: Reservation
    request: PodRequest
    """By the pod's filter."""
    share_node: ShareNode | None
    """By which the cards were chosen."""


@dataclass(slots=True)
class Binder:
    """Binds pods, each in one task at a time. A task goes on when its caller has given up: units stay
    reserved until the API server has said whether the pod is bound."""

    client: KubeClient
    ledger: Ledger
    permit: Callable[[], Awaitable[int]]
    """As ``BindLease.hold``: returns when this extender may bind; the number changes when another extender
    may have bound since. Raises ``NotHeldError`` when another one may be binding."""
    timing: BindTiming = field(default_factory=BindTiming)
    parallel: int = PARALLEL_BINDS
    bound: Callable[[PodReference, str], None] = lambda _pod, _node: None
    """Called with every pod that was bound just now, and its node."""
    ended: Callable[[BindResult], None] = lambda _: None
    """Called at the end of each bind."""
    expected: ExpectedRequests = field(default_factory=ExpectedRequests)
    """Filled by filters."""
    choices: RememberedPods[Mapping[str, ChoiceReason]] = field(
        default_factory=lambda: RememberedPods(MAX_CHOICES), init=False
    )
    """Of pods that were bound: card UUID -> why the pod got this card."""
    _tasks: dict[str, BindTask] = field(default_factory=dict, init=False)
    """By pod UID."""
    _holding: int = field(default=0, init=False)
    """What ``permit`` returned last."""
    _slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.parallel)

    async def bind(self, pod: PodReference, node: str) -> str:
        """Returns an error message, empty when ``node`` has ``pod``. Never raises for what others do."""
        if not (pod.uid and pod.name and pod.namespace and node):
            return "a bind needs PodName, PodNamespace, PodUID and Node"
        bind_task = self._tasks.get(pod.uid) or self._start(pod, node)
        done, _ = await asyncio.wait({bind_task.task}, timeout=self.timing.answer_within)
        if not done:
            return f"it is not known yet whether the pod is bound to node {bind_task.node}"
        if bind_task.node != node and not bind_task.task.result():
            return f"the pod is bound to node {bind_task.node} already"
        return bind_task.task.result()

    def may_be_binding(self) -> bool:
        """Returns whether a Binding may be under way, also one whose task ended by a defect."""
        lost = self.ledger.reservations.in_state(BindState.ABANDONED)
        certain = self.timing.clock() - self.timing.uncertain_for
        return bool(self._tasks) or any(reservation.since > certain for reservation in lost)

    @property
    def under_way(self) -> int:
        return len(self._tasks)

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
        result, message = await self._attempt(pod, node)
        self.ended(result)
        return message

    async def _attempt(self, pod: PodReference, node: str) -> tuple[BindResult, str]:
        extra = {"pod": str(pod), "node": node}
        answer_due = self.timing.clock() + self.timing.answer_within
        try:
            await self._take_slot()
            try:
                await self._bind(pod, node, answer_due=answer_due)
            finally:
                self._slots.release()
        except (NotBoundError, NotHeldError) as error:
            _log.info("the pod is not bound: %s", error, extra=extra)
            refused = isinstance(error, NotBoundError)
            return (BindResult.REFUSED if refused else BindResult.NO_LEASE, str(error))
        except Exception as error:
            self.ledger.reservations.abandon(pod.uid, now=self.timing.clock())
            _log.exception("bind failed", extra=extra)
            return (BindResult.DEFECT, f"internal error of the extender: {error!r}")
        return (BindResult.BOUND, "")

    async def _take_slot(self) -> None:
        """While a bind waits for its slot nothing has been reserved or sent.

        Raises:
            NotBoundError: half of the caller's timeout is over, and the bind itself needs the other half.
        """
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(self.timing.answer_within / 2):
                await self._slots.acquire()
        except TimeoutError:
            raise NotBoundError(
                f"the API server is slow: {self.parallel} binds wait for it already"
            ) from None

    async def _bind(self, pod: PodReference, node: str, *, answer_due: float) -> None:
        if self._is_bound(pod, node):
            return
        expected, held_before = self.expected.take(pod.uid), self._holding
        asked = expected.request if expected else None
        reserved = self._reserve_expected(pod, node, asked)  # pods that are filtered from now on see it
        try:
            holding = self._holding = await self.permit()
            if holding != held_before:  # the ledger has seen since what another extender bound
                self._release(reserved)
                reserved = self._reserve_expected(pod, node, asked)
            known = self._certain(expected, reserved) or await self._read_request(pod)
            is_bound = self._is_bound(pod, node)
        except BaseException:  # whatever it is, nothing was sent
            self._release(reserved)
            raise
        if is_bound:
            return
        if reserved is not None and not self._serves(reserved, known.request):
            self._release(reserved)
            reserved = None
        if known.request.resources:
            await self._bind_with_share(
                pod, node, known, reserved=reserved, holding=holding, answer_due=answer_due
            )
        else:
            await self._write(Binding(pod, node, {}), holding=holding, answer_due=answer_due).ensure_bound()
            _log.debug("bound without a card", extra={"pod": str(pod), "node": node})

    def _certain(self, expected: ExpectedRequest | None, reserved: Expected | None) -> ExpectedRequest | None:
        """Returns what the authenticated kube-scheduler has said that the pod asks for, if units are reserved
        for that, and the same resources are still ours: then the API server need not be asked. Source:
        containers' resources are immutable but for CPU and memory (``ValidatePodUpdate``), and a Binding is
        for one UID and version."""
        is_certain = expected and reserved and expected.names is self.ledger.resources
        return expected if is_certain else None

    def _reserve_expected(self, pod: PodReference, node: str, request: PodRequest | None) -> Expected | None:
        """Reserves what the pod is expected to ask for while the API server is asked: pods that are filtered
        meanwhile do not find it free. Where units are held for pods, nothing is reserved by a caller's word:
        that could end their holds.

        Raises:
            NotBoundError: not even that fits.
        """
        holds = self.ledger.holds
        if request is None or self.ledger.holder(pod.uid) or holds.get(pod.uid) or node in holds.nodes():
            return None
        return Expected(self._reserve(pod, node, request), request, self.ledger.share_node(node))

    def _serves(self, reserved: Expected, request: PodRequest) -> bool:
        """Returns whether ``reserved`` still exists, is what the pod asks for and may have, and would be
        chosen now: the node may have been closed meanwhile, or have another unit."""
        node = reserved.reservation.holder.node
        is_right = is_same(reserved.request, request) and not unservable_reason(request)
        is_unchanged = self.ledger.share_node(node) is reserved.share_node and self.ledger.room(node)
        return is_right and bool(is_unchanged) and self._is_there(reserved)

    def _is_there(self, reserved: Expected) -> bool:
        return self.ledger.reservations.get(reserved.reservation.holder.uid) is reserved.reservation

    def _release(self, reserved: Expected | None) -> None:
        """Nothing was sent for it. Without effect on a later reservation."""
        if reserved is not None and self._is_there(reserved):
            self.ledger.release(reserved.reservation.holder.uid)

    def _is_bound(self, pod: PodReference, node: str) -> bool:
        """Returns whether the ledger has the pod bound to ``node`` already.

        Raises:
            NotBoundError: the pod has units on another node.
        """
        holder = self.ledger.holder(pod.uid)
        if holder and holder.node != node:
            raise NotBoundError(f"the pod already holds its share of cards on node {holder.node}")
        return holder is not None and not self.ledger.reservations.is_unconfirmed(pod.uid)

    async def _read_request(self, pod: PodReference) -> ExpectedRequest:
        """Returns what the pod itself requests: a caller that is not authenticated is not believed, and a
        pod's request never changes.

        The request may be empty. A scheduler also leaves pods to us that ask for an amount of 0, or for what
        was ours until lately and is another plugin's now, such as ``nvidia.com/gpu``. Nobody else would bind
        them.

        Raises:
            NotBoundError: the pod is gone, or no scheduler would have left it to us.
        """
        try:
            present = await self._read_pod(pod)
        except (ApiError, UnreachableError) as error:
            raise NotBoundError(f"cannot read the pod to learn what it asks for: {error}") from error
        if present.metadata.uid != pod.uid:
            raise NotBoundError("the pod is gone: another one has its name now")
        request = present.request(self.ledger.resources)
        if not request.resources and not present.asks_for_any(ASKED_RESOURCES):
            resources = " or ".join(self.ledger.resources)
            raise NotBoundError(f"the pod asks for no {resources}: the gpushare extender binds no others")
        return ExpectedRequest(request, version=present.version)

    async def _read_pod(self, pod: PodReference) -> KubePod:
        """Asks the API server's cache first: nearly always the pod is in it, and etcd is spared a read. Not
        for longer than the caller waits: other binds wait for the slot."""
        read = ApiRequest(path=pod_path(pod.namespace, pod.name), timeout=float(CALL_SECONDS))
        try:
            cached = await self.client.read(dataclasses.replace(read, params=FROM_CACHE), shape=KubePod)
            if cached.metadata.uid == pod.uid:
                return cached
        except ApiError as error:
            if not error.is_not_found:
                raise
        return await self.client.read(read, shape=KubePod)

    async def _bind_with_share(
        self,
        pod: PodReference,
        node: str,
        known: ExpectedRequest,
        *,
        reserved: Expected | None,
        holding: int,
        answer_due: float,
    ) -> None:
        earlier = None if reserved else self.ledger.reservations.get(pod.uid)
        reservation = reserved.reservation if reserved else self._reserve(pod, node, known.request)
        share_node = self.ledger.share_node(node)
        assert share_node
        now = self.timing.now()
        allocation = allocation_of(reservation.holder, known.request, share_node, now=now)
        binding = share_binding(pod, allocation, share_node, now=now)
        write = self._write(binding, holding=holding, answer_due=answer_due)
        write.version = known.version
        write.uncertain_until = earlier.since + self.timing.uncertain_for if earlier else None
        try:
            await write.ensure_bound()
        except BoundBeforeError:
            self.ledger.release_later(pod.uid, now=self.timing.clock())
            raise
        except NotBoundError:
            self.ledger.release(pod.uid)
            raise
        self.ledger.reservations.confirm(pod.uid, now=self.timing.clock())
        self._remember(reservation)
        self.bound(pod, node)

    def _remember(self, reservation: Reservation) -> None:
        """No object says why the pod got its cards: that is logged, and shown while it is remembered."""
        holder, reasons = reservation.holder, reservation.reasons
        self.choices.remember(holder.uid, reasons)
        cards = ", ".join(card.card for card in holder.cards)
        extra = {"pod": str(holder.pod), "node": holder.node, "card": cards}
        _log.info("bound: %s", "; ".join(dict.fromkeys(reasons.values())), extra=extra)

    def _write(self, binding: Binding, *, holding: int, answer_due: float) -> BindingWrite:
        return BindingWrite(
            client=self.client,
            binding=binding,
            timing=self.timing,
            permit=self.permit,
            holding=holding,
            answer_due=answer_due,
        )

    def _reserve(self, pod: PodReference, node: str, request: PodRequest) -> Reservation:
        """Choosing and reserving are one step: no await may come between them."""
        if reason := unservable_reason(request):
            raise NotBoundError(reason)
        try:
            self.ledger.reserve(pod, node=node, request=request, priority=request.priority)
        except DoesNotFitError as error:
            raise NotBoundError(str(error)) from error
        reservation = self.ledger.reservations.get(pod.uid)
        assert reservation
        return reservation
