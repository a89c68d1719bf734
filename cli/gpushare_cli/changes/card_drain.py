"""Drains cards: cordons them, evicts their pods, and waits until their units are free."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from gpushare_cli.changes.card_cordon import CardCordoning
from gpushare_cli.decide.drain.card_tenants import card_cordons, tenants_of
from gpushare_cli.decide.drain.cordon import named_cards
from gpushare_cli.decide.drain.cordon_report import CardCordon
from gpushare_cli.decide.drain.drain_plan import DrainSubject, came, drain_plan, protecting_budget
from gpushare_cli.decide.drain.drain_report import DrainAction, DrainedPod, DrainOutcome, DrainReport
from gpushare_cli.decide.ledger import bookings_of, observed_ledger
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_cli.decide.simulation.simulation import NOT_CONSIDERED, SimulatedCluster
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import read_list
from gpushare_cli.gather.pod_holders import read_booked
from gpushare_cli.gather.simulation.cluster_state import StateReader, pods_on, read_cluster
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.wording import counted
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import DISRUPTION_BUDGETS, pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.text.json_object import Json

POLL_SECONDS = 1.0
RETRY_SECONDS = 2.0
"""Between two tries to evict a pod that a PodDisruptionBudget protects."""
SETTLE_SECONDS = 2.0
"""From when the card is closed: by then a pod that was being bound to it is bound, or goes elsewhere."""
NAMESPACE_GOES = "is being terminated"
"""In a refusal that passes: the pod is deleted with its namespace."""
MISSING = (
    "The plugin on {node} does not report {cards} any more, so that nobody knows who has units there: kubectl"
    " describe gpusharenode {node}"
)
UNCONFIRMED = (
    "No pod was evicted: the plugin on {node} has not taken the cordon over, so that new pods could come to"
    " the card. See whether it runs: kubectl get pods -n gpushare-system -o wide"
)

Agrees = Callable[[DrainReport], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    dry_run: bool = False
    timeout: float = 300.0
    """Seconds for evictions and for the units to come free."""
    grace_period: int | None = None
    """Seconds that each pod has to end; None: as the pod says."""
    is_forced: bool = False
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class CardDrain:
    client: KubeClient
    progress: ProgressLine
    cordoning: CardCordoning
    options: DrainOptions
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    _named: list[ObservedCard] = field(default_factory=list, init=False)
    """The cards, as they were when the plan was made: only that says which a person has meant by an index."""
    _pods: dict[tuple[str, str, str], DrainedPod] = field(default_factory=dict, init=False)
    """Those of the plan, and those that came after it, as far as they have come."""
    _manifests: dict[str, Json] = field(default_factory=dict, init=False)
    """UID -> the pod, as the API server has it."""
    _retry_at: dict[str, float] = field(default_factory=dict, init=False)
    _problem: str = field(default="", init=False)
    _share_node: ObservedShareNode | None = field(default=None, init=False)
    _ledger: NodeLedger = field(default_factory=NodeLedger, init=False)
    """Of the node, as ``_share_node`` and its pods say."""

    @property
    def node(self) -> str:
        return self.cordoning.node

    async def run(self, words: Sequence[str], agrees: Agrees) -> DrainReport:
        """Raises ``CannotLookError`` before anything is changed, or where nobody knows whether it was."""
        await self._plan(words)
        if self.options.dry_run:
            return self._report(DrainOutcome.DRY_RUN)
        if any(pod.action is DrainAction.NEEDS_FORCE for pod in self._pods.values()):
            return self._report(DrainOutcome.REFUSED)
        if not await agrees(self._report(DrainOutcome.DRY_RUN)):
            return self._report(DrainOutcome.DECLINED)
        begun = self.clock()
        try:
            outcome = await self._carried_out(begun)
        except asyncio.CancelledError:
            # Of Ctrl-C: this task reports what there is instead.
            if task := asyncio.current_task():
                task.uncancel()
            outcome = DrainOutcome.INTERRUPTED
        return self._report(outcome, seconds=self.clock() - begun)

    async def _plan(self, words: Sequence[str]) -> None:
        self.progress.doing("reading GPUShareNodes, nodes and pods")
        _, self._share_node = await self.cordoning.read()
        self._named = named_cards(self._share_node, words)
        pods, cluster, budgets = await asyncio.gather(
            pods_on(self.client, self.node), self._cluster(), self._budgets()
        )
        self._manifests = {pod["metadata"]["uid"]: pod for pod in pods}
        self._ledger = observed_ledger(self._share_node, bookings_of(pods))
        subject = DrainSubject(
            node=self.node,
            uuids=self._uuids,
            tenants=tenants_of(self._named, self._ledger),
            pods=pods,
            budgets=budgets,
            is_forced=self.options.is_forced,
        )
        self._pods = {pod.key: pod for pod in drain_plan(subject, cluster)}

    @property
    def _uuids(self) -> list[str]:
        return [card.uuid for card in self._named]

    async def _cluster(self) -> SimulatedCluster:
        return await read_cluster(self.client, await StateReader(self.client).share_nodes(), without=())

    async def _budgets(self) -> list[Budget]:
        """Returns none where they cannot be read: the API server heeds them nevertheless."""
        try:
            return await read_list(self.client, DISRUPTION_BUDGETS, shape=Budget)
        except CannotLookError:
            return []

    async def _carried_out(self, begun: float) -> DrainOutcome:
        cordon = await self.cordoning.run(self._uuids, is_cordon=True, reason=self.options.reason)
        if not cordon.is_confirmed:
            await self._look()
            self._problem = UNCONFIRMED.format(node=self.node)
            return DrainOutcome.INCOMPLETE
        closed, deadline = self.clock(), begun + self.options.timeout
        while True:
            await self._evict_all()
            is_known = await self._look()
            waiting = [pod for pod in self._pods.values() if pod.may_go]
            if is_known and not waiting and self.clock() - closed >= SETTLE_SECONDS:
                return DrainOutcome.INCOMPLETE if self._is_held() else DrainOutcome.DRAINED
            if self.clock() >= deadline:
                return DrainOutcome.INCOMPLETE
            self.progress.doing(self._doing(waiting))
            await self.sleep(POLL_SECONDS)

    def _doing(self, waiting: Sequence[DrainedPod]) -> str:
        if self._problem:
            return self._problem
        protected = [pod for pod in waiting if pod.budget]
        if protected:
            return f"PodDisruptionBudget {protected[0].budget} does not let {protected[0].text} go yet"
        if not waiting:
            return "looking whether a pod was on its way to the card"
        return f"waiting until {counted(len(waiting), 'pod')} and their units are gone"

    def _is_held(self) -> bool:
        units = sum(card.allocated_units for card in self._cards())
        return bool(units) or any(not pod.is_gone for pod in self._pods.values())

    async def _look(self) -> bool:
        """Notes which pods are gone, and which have come. Returns whether that is known: an API server that
        is away for a moment, or a card that its plugin does not report, says nothing of units."""
        try:
            _, share_node = await self.cordoning.read()
            missing = {*self._uuids} - {card.uuid for card in share_node.cards}
            if missing:
                self._problem = MISSING.format(node=self.node, cards=", ".join(sorted(missing)))
                return False
            booked = await read_booked(self.client, [self.node])
        except CannotLookError as error:
            self._problem = str(error)
            return False
        self._share_node, self._problem = share_node, ""
        self._ledger = observed_ledger(share_node, booked)
        cards = [card for card in share_node.cards if card.uuid in self._uuids]
        pods = {tenant.key: tenant for tenant in tenants_of(cards, self._ledger)}
        for key, pod in self._pods.items():
            if key in pods:
                self._pods[key] = msgspec.structs.replace(pod, is_gone=False)
            else:
                self._pods[key] = msgspec.structs.replace(pod, is_gone=True, budget="", problem="")
        for key in pods.keys() - self._pods.keys():
            self._pods[key] = came(pods[key])
        return True

    async def _evict_all(self) -> None:
        now = self.clock()
        for key, pod in self._pods.items():
            is_due = self._retry_at.get(pod.uid, now) <= now
            if pod.action is DrainAction.EVICT and pod.may_go and not pod.is_evicted and is_due:
                self._pods[key] = await self._evicted(pod)

    async def _evicted(self, pod: DrainedPod) -> DrainedPod:
        """Returns the pod after a try to evict it, and no other one of its name."""
        grace = self.options.grace_period
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}, **options},
        }
        path = f"{pod_path(pod.namespace, pod.name)}/eviction"
        self._retry_at[pod.uid] = self.clock() + RETRY_SECONDS
        try:
            await self.client.send(ApiRequest(method="POST", path=path, body=body))
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                self._retry_at[pod.uid] = self.clock() + max(RETRY_SECONDS, error.retry_after)
                return await self._refused(pod, error)
        except UnreachableError as error:
            return msgspec.structs.replace(pod, problem=str(error))
        return msgspec.structs.replace(pod, is_evicted=True, budget="", problem="")

    async def _refused(self, pod: DrainedPod, error: ApiError) -> DrainedPod:
        budget = ""
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            budget = protecting_budget(self._manifests[pod.uid], await self._budgets())
        is_refused = error.is_final and NAMESPACE_GOES not in error.message
        return msgspec.structs.replace(pod, problem=error.message, budget=budget, is_refused=is_refused)

    def _cards(self) -> list[CardCordon]:
        if self._share_node is None:
            return []
        present = self._share_node.metadata.annotations or {}
        return card_cordons(self._share_node, self._named, present, ledger=self._ledger)

    def _report(self, outcome: DrainOutcome, *, seconds: float = 0.0) -> DrainReport:
        return DrainReport(
            node=self.node,
            outcome=outcome,
            cards=self._cards(),
            pods=[*self._pods.values()],
            seconds=round(seconds, 1),
            problem=self._problem,
            not_considered=NOT_CONSIDERED,
        )
