"""Drains cards: cordons them, evicts their pods, and waits until their units are free."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from gpushare_cli.changes.card_cordon import POLL_SECONDS, CardCordoning
from gpushare_cli.decide.drain.cordon import named_cards
from gpushare_cli.decide.drain.cordon_report import CardCordon, card_cordons, tenants_of
from gpushare_cli.decide.drain.drain_plan import DrainSubject, drain_plan, protecting_budget
from gpushare_cli.decide.drain.drain_report import DrainAction, DrainedPod, DrainOutcome, DrainReport
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.simulation.simulation import NOT_CONSIDERED, SimulatedCluster
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import read_list
from gpushare_cli.gather.simulation.cluster_state import StateReader, pods_with_units, read_cluster
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.wording import counted
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import DISRUPTION_BUDGETS, pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.text.json_object import Json

RETRY_SECONDS = 2.0
"""Between two tries to evict a pod that a PodDisruptionBudget protects."""
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
    _is_cordoned: bool = field(default=False, init=False)
    _pods: dict[str, DrainedPod] = field(default_factory=dict, init=False)
    """By UID; those of the plan, as far as they have come."""
    _manifests: dict[str, Json] = field(default_factory=dict, init=False)
    """UID -> the pod, as the API server has it."""
    _retry_at: dict[str, float] = field(default_factory=dict, init=False)
    _problem: str = field(default="", init=False)
    _share_node: ObservedShareNode | None = field(default=None, init=False)
    _uuids: frozenset[str] = field(default=frozenset(), init=False)

    @property
    def node(self) -> str:
        return self.cordoning.node

    async def run(self, words: Sequence[str], agrees: Agrees) -> DrainReport:
        """Raises ``CannotLookError`` before anything is changed, or where the API server is away."""
        await self._plan(words)
        if self.options.dry_run:
            return self._report(DrainOutcome.DRY_RUN)
        if any(pod.action is DrainAction.NEEDS_FORCE for pod in self._pods.values()):
            return self._report(DrainOutcome.REFUSED)
        if not await agrees(self._report(DrainOutcome.DRY_RUN)):
            return self._report(DrainOutcome.DECLINED)
        begun = self.clock()
        try:
            outcome = await self._carried_out(words, begun)
        except asyncio.CancelledError:
            if not self._is_cordoned:
                raise
            # Of Ctrl-C: this task reports what there is instead.
            if task := asyncio.current_task():
                task.uncancel()
            outcome = DrainOutcome.INTERRUPTED
        return self._report(outcome, seconds=self.clock() - begun)

    async def _plan(self, words: Sequence[str]) -> None:
        self.progress.doing("reading GPUShareNodes, nodes and pods")
        _, self._share_node = await self.cordoning.read()
        cards = named_cards(self._share_node, words)
        self._uuids = frozenset(card.uuid for card in cards)
        uids = {tenant.uid for card in cards for tenant in tenants_of(card)}
        pods, cluster, budgets = await asyncio.gather(
            pods_with_units(self.client, self.node, uids), self._cluster(), self._budgets()
        )
        self._manifests = {str(pod["metadata"].get("uid", "")): pod for pod in pods}
        subject = DrainSubject(
            node=self.node,
            cards=cards,
            pods=pods,
            budgets=budgets,
            is_forced=self.options.is_forced,
        )
        self._pods = {pod.uid: pod for pod in drain_plan(subject, cluster)}

    async def _cluster(self) -> SimulatedCluster:
        return await read_cluster(self.client, await StateReader(self.client).share_nodes(), without=())

    async def _budgets(self) -> list[Budget]:
        """Returns none where they cannot be read: the API server heeds them nevertheless."""
        try:
            return await read_list(self.client, DISRUPTION_BUDGETS, shape=Budget)
        except CannotLookError:
            return []

    async def _carried_out(self, words: Sequence[str], begun: float) -> DrainOutcome:
        self._is_cordoned = True
        cordon = await self.cordoning.run(words, is_cordon=True, reason=self.options.reason)
        if not cordon.is_confirmed:
            self._problem = UNCONFIRMED.format(node=self.node)
            return DrainOutcome.INCOMPLETE
        deadline = begun + self.options.timeout
        while True:
            await self._evict_all()
            _, self._share_node = await self.cordoning.read()
            self._note_gone()
            waiting = [pod for pod in self._pods.values() if not pod.is_gone]
            if not any(pod.action in (DrainAction.EVICT, DrainAction.ENDING) for pod in waiting):
                return DrainOutcome.INCOMPLETE if self._is_held() else DrainOutcome.DRAINED
            if self.clock() >= deadline:
                return DrainOutcome.INCOMPLETE
            self.progress.doing(self._doing(waiting))
            await self.sleep(POLL_SECONDS)

    def _doing(self, waiting: Sequence[DrainedPod]) -> str:
        protected = [pod for pod in waiting if pod.budget]
        if protected:
            return f"PodDisruptionBudget {protected[0].budget} does not let {protected[0].text} go yet"
        return f"waiting until {counted(len(waiting), 'pod')} and their units are gone"

    def _is_held(self) -> bool:
        """Returns whether any unit of the cards is still taken: a pod may have come just before."""
        return any(card.allocated_units for card in self._cards())

    def _note_gone(self) -> None:
        present = {share.uid for card in self._cards() for share in card.pods}
        for uid, pod in self._pods.items():
            if uid not in present:
                self._pods[uid] = msgspec.structs.replace(pod, is_gone=True, budget="", problem="")

    async def _evict_all(self) -> None:
        now = self.clock()
        due = [
            pod
            for pod in self._pods.values()
            if pod.action is DrainAction.EVICT
            and not (pod.is_evicted or pod.is_gone)
            and self._retry_at.get(pod.uid, now) <= now
        ]
        for pod in due:
            self._pods[pod.uid] = await self._evicted(pod)

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
        try:
            await self.client.send(ApiRequest(method="POST", path=path, body=body))
        except ApiError as error:
            if error.is_not_found or error.is_conflict:
                return msgspec.structs.replace(pod, is_evicted=True, budget="", problem="")
            self._retry_at[pod.uid] = self.clock() + max(RETRY_SECONDS, error.retry_after)
            return await self._refused(pod, error)
        except UnreachableError as error:
            self._retry_at[pod.uid] = self.clock() + RETRY_SECONDS
            return msgspec.structs.replace(pod, problem=str(error))
        return msgspec.structs.replace(pod, is_evicted=True, budget="", problem="")

    async def _refused(self, pod: DrainedPod, error: ApiError) -> DrainedPod:
        budget = ""
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            budget = protecting_budget(self._manifests[pod.uid], await self._budgets())
        return msgspec.structs.replace(pod, problem=error.message, budget=budget)

    def _cards(self) -> list[CardCordon]:
        share_node = self._share_node
        if share_node is None:
            return []
        cards = [card for card in share_node.cards if card.uuid in self._uuids]
        return card_cordons(share_node, cards, share_node.metadata.annotations or {})

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
