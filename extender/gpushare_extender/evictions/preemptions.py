"""Evicting pods so that one card is free for a pod of higher priority, where kube-scheduler finds no victim.

Its dry run looks at the sum of a node: where that fits and no card does, it evicts nobody, and the pod would
wait for ever (kubernetes#139270). What is freed is held for the pod until it is bound, or for a limited time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpushare_core.kube.backoff import backoff_delay
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.kube.paths import events, pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.fit.filter import fitting_nodes, passing_nodes
from gpushare_core.scheduling.ledger.hold import HOLD_SECONDS, Hold
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.scheduling.preemption.victims import Eviction, NodeWithout, evictable, find_eviction
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.decide.preemption.events import PreemptionEvent, preempted, preempting, refused
from gpushare_extender.decide.preemption.queue import (
    SCHEDULER_EVICTS_SECONDS,
    EvictionRate,
    PreemptionQueue,
    Preemptor,
    Rank,
)
from gpushare_extender.evictions.eviction_call import EvictionOutcome, ProtectedError, evict
from gpushare_extender.evictions.node_pods import NodePodReader

LOOK_SECONDS = 0.25
"""For so long pods are looked at without a pause; then comes a pause of the same length."""
NEXT_SECONDS = 1.0
"""Until the next nodes are looked at for a pod that has nodes left."""
LOWEST_SECONDS = 60.0
"""The lowest priority on a node is believed for so long: most pods that wait are as important as others."""
FIRST_RETRY = 5.0
MAX_RETRY = 300.0
MAX_NODES = 16
"""That are looked at for one pod at a time; the next ones follow soon."""
UNTRIED_SECONDS = 330.0
"""Units are held for so long where kube-scheduler has not tried the pod since they are free. It may let a pod
that was refused often wait for five minutes (``podMaxBackoffSeconds``; the dedicated one does), and others
come before the pod then."""
ALIVE_SECONDS = 5.0
"""Between two looks at a pod that something is held for."""
PROTECTED_SECONDS = 60.0
"""A pod that may not be evicted is not tried again for so long."""
SAMPLED_ATTEMPTS = 5
"""So often nothing is evicted yet where nodes have room that kube-scheduler may not have offered."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _HeldPod:
    looked_at: float = 0.0
    free_since: float | None = None
    """Since when its units are free; None while they are not."""
    untried: float | None = None
    """When kube-scheduler was last seen not to have tried the pod since ``free_since``."""


@dataclass(slots=True, kw_only=True)
class Preemptions:
    """Looks after the pods in ``preemptors``, one after the other."""

    client: KubeClient
    ledger: Ledger
    preemptors: PreemptionQueue
    permit: Callable[[], Awaitable[int]]
    """As the ``Binder``'s: one extender at a time evicts."""
    would_fit: Callable[[str], None]
    """Called with the UID of a pod that kube-scheduler should try again."""
    has_seen_all: Callable[[str], bool] = lambda _: False
    """Whether kube-scheduler has looked at all nodes that it will offer the pod with this UID."""
    timing: BindTiming = field(default_factory=BindTiming)
    ending: EndingPods = field(default_factory=EndingPods)
    rate: EvictionRate = field(default_factory=EvictionRate)
    attempted: Callable[[EvictionOutcome], None] = lambda _: None
    """Called after every attempt to evict a pod."""
    _protected: dict[str, float] = field(default_factory=dict, init=False)
    """UID of a pod that may not be evicted -> until when that is believed."""
    _lowest: dict[str, tuple[float, int | None]] = field(default_factory=dict, init=False)
    """Node -> when it was looked at, and the lowest priority of a pod there that has units."""
    _held_pods: dict[str, _HeldPod] = field(default_factory=dict, init=False)
    """By UID, of the pods that something is held for."""

    async def run(self) -> None:
        while True:
            await self.timing.sleep(LOOK_SECONDS)
            await self._end_holds()
            await self._look_at_due(until=self.timing.clock() + LOOK_SECONDS)

    async def _look_at_due(self, *, until: float) -> None:
        """After each look requests are answered, and the pod that is the most important then is next."""
        while (preemptor := self._next()) and self.timing.clock() < until:
            await self._look_at(preemptor)
            await self.timing.sleep(0.0)

    def _next(self) -> Preemptor | None:
        due = self.preemptors.due(now=self.timing.clock())
        holds = self.ledger.holds
        return next((found for found in due if found.is_interrupted or found.pod.uid not in holds), None)

    async def _look_at(self, preemptor: Preemptor) -> None:
        """The next look follows in time, whatever comes of this one."""
        delay = backoff_delay(preemptor.attempts + 1, first=FIRST_RETRY, most=MAX_RETRY)
        self.preemptors.looked_at(preemptor, again=self.timing.clock() + delay)
        try:
            await self._preempt(preemptor)
        except (ApiError, UnreachableError, NotHeldError) as error:
            _log.info("cannot evict pods now: %s", error, extra={"pod": str(preemptor.pod)})
        except Exception:
            _log.exception("preemption failed", extra={"pod": str(preemptor.pod)})

    async def _preempt(self, preemptor: Preemptor) -> None:
        if self._fits_offered(preemptor):
            self.would_fit(preemptor.pod.uid)
        elif self._may_fit_others(preemptor):
            return  # ``SampledPods`` makes kube-scheduler look at these
        elif (names := self._next_nodes(preemptor)) and await self._is_there(preemptor):
            budgets, pods = await self._reader.budgets(), await self._read_nodes(names)
            if evictions := self._evictions(preemptor, pods, budgets):
                await self._choose(preemptor, min(evictions, key=lambda eviction: eviction.cost))
            else:
                self._go_on(preemptor, names)
                await self._tell_of_budgets(preemptor, pods, budgets)

    async def _choose(self, preemptor: Preemptor, best: Eviction) -> None:
        now = self.timing.clock()
        if not _is_worth_holding(best, preemptor):
            return
        evictions = len(best.victims)  # none where pods that end already will do: that waits for no turn
        if evictions and not self.rate.allows(evictions, now=now, preemptor=preemptor):
            if self.rate.is_next(preemptor):
                self.preemptors.has_to_wait(preemptor, again=now + FIRST_RETRY)
            return
        if preemptor.is_stale(now=now):
            preemptor.is_activated = True
            self.would_fit(preemptor.pod.uid)
            return
        await self.permit()
        if await self._still_waits(preemptor):
            await self._carry_out(preemptor, best.node)

    # Looking

    def _fits_offered(self, preemptor: Preemptor) -> bool:
        return bool(passing_nodes(self.ledger, preemptor.nodes, preemptor.request))

    def _may_fit_others(self, preemptor: Preemptor) -> bool:
        """Returns whether kube-scheduler, which looks at some of many nodes at a time, may yet offer the pod
        nodes that it fits."""
        uid, request = preemptor.pod.uid, preemptor.request
        if not preemptor.may_be_sampled or preemptor.attempts > SAMPLED_ATTEMPTS or self.has_seen_all(uid):
            return False
        return bool(fitting_nodes(self.ledger, uid=uid, request=request))

    def _greatest(self, preemptor: Preemptor) -> Mapping[str, int]:
        """Returns node that serves what the pod asks for -> the greatest amount that fits there."""
        return self.ledger.greatest[preemptor.request.resources[0].name]

    def _evictions(
        self, preemptor: Preemptor, pods: Mapping[str, Sequence[BoundPod]], budgets: Sequence[Budget]
    ) -> list[Eviction]:
        found = (self._find(preemptor, name, there, budgets) for name, there in pods.items())
        return [eviction for eviction in found if eviction]

    async def _read_nodes(self, names: Sequence[str]) -> dict[str, list[BoundPod]]:
        lists = await asyncio.gather(*map(self._reader.pods, names))
        self._forget_old()
        for name, pods in zip(names, lists, strict=True):
            lowest = min((pod.priority for pod in self._holders(name, pods)), default=None)
            self._lowest[name] = (self.timing.clock(), lowest)
        return dict(zip(names, lists, strict=True))

    def _forget_old(self) -> None:
        """The nodes and pods of what is not believed any more may be gone."""
        now = self.timing.clock()
        self._lowest = {name: at for name, at in self._lowest.items() if now - at[0] <= LOWEST_SECONDS}
        self._protected = {uid: until for uid, until in self._protected.items() if until > now}

    def _next_nodes(self, preemptor: Preemptor) -> list[str]:
        """Returns the nodes with the most room on a card first, each time the next ones; none where no pods
        of a lower priority are known to have units anywhere."""
        ranked = self._ranked(preemptor)
        left = [rank for rank in ranked if rank > preemptor.reached] or ranked
        return [name for _, name in sorted(left)[:MAX_NODES]]

    def _ranked(self, preemptor: Preemptor) -> list[Rank]:
        """Returns its nodes on which evicting others may help, in no particular order."""
        greatest, useless = self._greatest(preemptor), self._without_lesser(preemptor.priority)
        names = (name for name in preemptor.nodes if name not in useless)
        return [(-greatest[name], name) for name in names if name in greatest and self._preempts(name)]

    def _go_on(self, preemptor: Preemptor, names: Sequence[str]) -> None:
        """Nothing helps on the nodes ``names``: those behind them follow soon."""
        now, last = self.timing.clock(), names[-1]
        preemptor.reached = (-self._greatest(preemptor).get(last, 0), last)
        has_others = any(rank > preemptor.reached for rank in self._ranked(preemptor))
        if has_others and preemptor.looks_left and preemptor.left_until <= now:
            self.preemptors.go_on(preemptor, again=now + NEXT_SECONDS)

    def _preempts(self, node: str) -> bool:
        share_node = self.ledger.share_node(node)
        return share_node is not None and share_node.preempts

    def _without_lesser(self, priority: int) -> set[str]:
        """Returns the nodes on which no pods of a lower priority are known to have units."""
        since = self.timing.clock() - LOWEST_SECONDS
        return {
            name
            for name, (seen, lowest) in self._lowest.items()
            if seen >= since and (lowest is None or lowest >= priority)
        }

    def _holders(self, node: str, pods: Iterable[BoundPod]) -> list[BoundPod]:
        """Returns those of ``pods`` that have units of cards."""
        found = self.ledger.node(node)
        return [pod for pod in pods if found and pod.uid in found.holders]

    def _find(
        self, preemptor: Preemptor, name: str, pods: Sequence[BoundPod], budgets: Sequence[Budget]
    ) -> Eviction | None:
        """Returns what to evict on a node, nobody where pods end already; None when nothing helps."""
        node = self.ledger.node(name)
        if node is None:
            return None
        holders = self._holders(name, pods)
        ending = self._holders(name, self.ending.of(name, pods, now=self.timing.clock()))
        gone = self.ledger.unreleased(name) | {pod.uid for pod in ending}
        ignorable = self.ledger.holds.ignorable_for(name, uid=preemptor.pod.uid, priority=preemptor.priority)
        without = NodeWithout(name, node, preemptor.request, ignorable)
        candidates = self._candidates(preemptor, holders)
        found = find_eviction(without, candidates, gone=gone, budgets=budgets)
        return replace(found, ending=tuple(ending)) if found else None

    def _candidates(self, preemptor: Preemptor, holders: Iterable[BoundPod]) -> list[BoundPod]:
        now = self.timing.clock()
        if preemptor.left_until > now:
            return []
        below = evictable(holders, below=preemptor.priority)
        return [pod for pod in below if self._protected.get(pod.uid, now) <= now]

    async def _tell_of_budgets(
        self, preemptor: Preemptor, pods: Mapping[str, Sequence[BoundPod]], budgets: Sequence[Budget]
    ) -> None:
        """Where only budgets are in the way, an Event says so once."""
        if preemptor.budgets_reported or not budgets:
            return
        evictions = self._evictions(preemptor, pods, [])
        if victims := [pod for eviction in evictions for pod in eviction.victims]:
            preemptor.budgets_reported = True
            why = "a PodDisruptionBudget protects it, and no other pods would free enough on one card"
            await self._tell(refused(preemptor.pod, victims[0].pod, why=why))

    async def _is_there(self, preemptor: Preemptor) -> bool:
        """Returns whether the pod may still wait: one that nobody has asked about for long may be gone."""
        is_stale = preemptor.is_stale(now=self.timing.clock())
        return not is_stale or await self._still_waits(preemptor)

    async def _still_waits(self, preemptor: Preemptor) -> bool:
        """Returns whether the pod still waits for a node, with the request and priority it was refused
        with."""
        present = await self._read(preemptor.pod)
        if present is None or not present.may_preempt:
            self.preemptors.settled(preemptor.pod.uid)
            return False
        if await self._is_nominated(present):
            preemptor.left_until = self.timing.clock() + SCHEDULER_EVICTS_SECONDS
        asked = present.request(self.ledger.resources)
        return asked == preemptor.request and present.priority == preemptor.priority

    async def _is_nominated(self, pod: KubePod) -> bool:
        """Returns whether less important pods end, in their time, on the node that kube-scheduler nominated:
        then kube-scheduler evicts no others either. We may not be asked about this node."""
        if not (node := pod.nominated_node):
            return False
        ending = self.ending.of(node, await self._reader.pods(node), now=self.timing.clock())
        return any(other.priority < pod.priority for other in ending)

    # Evicting

    async def _carry_out(self, preemptor: Preemptor, node: str) -> None:
        """Looks at the node once more: nothing may come between that and holding the card."""
        evicted: list[PodReference] = []
        preemptor.is_interrupted = True
        while eviction := await self._held(preemptor, node):
            if await self._evict(preemptor, eviction, evicted):
                break
        preemptor.is_interrupted = False
        if eviction and evicted:
            hold = self.ledger.holds.get(preemptor.pod.uid)
            cards = [card.card for card in hold.holder.cards] if hold else []
            await self._tell(preempting(preemptor.pod, evicted, node=node, cards=cards))

    async def _held(self, preemptor: Preemptor, node: str) -> Eviction | None:
        """Returns what to evict on ``node``, and holds it; None, and holds nothing, when nothing helps."""
        pods, budgets = await asyncio.gather(self._reader.pods(node), self._reader.budgets())
        eviction = self._find(preemptor, node, pods, budgets)
        useless = eviction is None or not _is_worth_holding(eviction, preemptor)
        is_bound = self.ledger.holder(preemptor.pod.uid) is not None
        fits_somewhere = self._fits_offered(preemptor) or self._may_fit_others(preemptor)
        if eviction is None or useless or is_bound or fits_somewhere:
            self.ledger.end_hold(preemptor.pod.uid)
            return None
        self._hold(preemptor, eviction)
        return eviction

    async def _evict(self, preemptor: Preemptor, eviction: Eviction, evicted: list[PodReference]) -> bool:
        """Adds to ``evicted``. Returns whether it is done. It stops at a victim that a budget protects, and
        once the pod has its units, or a more important pod has the card."""
        for victim in eviction.victims:
            await self.permit()
            if self.ledger.holds.get(preemptor.pod.uid) is None:
                return True
            self.rate.sent(now=self.timing.clock(), preemptor=preemptor)
            try:
                self.attempted(await evict(self.client, victim.pod))
            except (ProtectedError, ApiError) as error:
                self._protected[victim.uid] = self.timing.clock() + PROTECTED_SECONDS
                self.attempted(EvictionOutcome.REFUSED)
                await self._tell(refused(preemptor.pod, victim.pod, why=str(error)))
                return False
            evicted.append(victim.pod)
            _log.info(
                "evicted the pod to make room for pod %s",
                preemptor.pod,
                extra={"pod": str(victim.pod), "node": eviction.node},
            )
            await self._tell(preempted(victim.pod, preemptor.pod, node=eviction.node))
        return True

    def _hold(self, preemptor: Preemptor, eviction: Eviction) -> None:
        now, grace = self.timing.clock(), max(pod.grace for pod in eviction.pods)
        self.ledger.hold(
            preemptor.pod,
            node=eviction.node,
            request=preemptor.request,
            priority=preemptor.priority,
            gone=self.ledger.unreleased(eviction.node) | {pod.uid for pod in eviction.pods},
            until=now + grace + HOLD_SECONDS,
        )

    # Holds

    async def _end_holds(self) -> None:
        """Ends holds whose time is over, and holds for pods that are gone or bound."""
        for hold in [*self.ledger.holds.values()]:
            now = self.timing.clock()
            if self._is_over(hold, now=now):
                extra = {"pod": str(hold.holder.pod), "node": hold.node}
                _log.info("no units are held for the pod any more", extra=extra)
                self.ledger.end_hold(hold.uid)
            elif now - self._held_pod(hold).looked_at >= ALIVE_SECONDS:
                self._held_pod(hold).looked_at = now
                if not await self._is_waiting(hold.holder.pod):
                    self.ledger.end_hold(hold.uid)
                    self.preemptors.settled(hold.uid)
        self._held_pods = {uid: pod for uid, pod in self._held_pods.items() if uid in self.ledger.holds}

    def _held_pod(self, hold: Hold) -> _HeldPod:
        return self._held_pods.setdefault(hold.uid, _HeldPod())

    def _is_over(self, hold: Hold, *, now: float) -> bool:
        """Returns whether its time is over, or the pod could have had the units for some time: something else
        keeps it from the node."""
        pod = self._held_pod(hold)
        ignorable = self.ledger.holds.ignorable_for(hold.node, uid=hold.uid, priority=hold.priority)
        if not self.ledger.fits(hold.node, hold.request, gone=ignorable):
            pod.free_since = pod.untried = None
            return now >= hold.until
        if pod.free_since is None:
            pod.free_since = now
        if not self.preemptors.was_tried(hold.uid, since=pod.free_since):
            pod.untried = now
            return now - pod.free_since >= UNTRIED_SECONDS
        if pod.untried is not None:
            return now - pod.untried >= HOLD_SECONDS
        return now >= hold.until or now - pod.free_since >= HOLD_SECONDS

    async def _is_waiting(self, pod: PodReference) -> bool:
        try:
            present = await self._read(pod)
        except (ApiError, UnreachableError):
            return True
        return present is not None and present.may_preempt

    # Calls

    @property
    def _reader(self) -> NodePodReader:
        return NodePodReader(self.client)

    async def _read(self, pod: PodReference) -> KubePod | None:
        """Returns None when there is no such pod any more."""
        try:
            request = ApiRequest(path=pod_path(pod.namespace, pod.name))
            present = await self.client.read(request, shape=KubePod)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return present if present.metadata.uid == pod.uid else None

    async def _tell(self, event: PreemptionEvent) -> None:
        try:
            await self.client.create(events(event.pod.namespace), event.to_json(self.timing.now()))
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot write the Event %r: %s", event.note, error, extra={"pod": str(event.pod)})


def _is_worth_holding(eviction: Eviction, preemptor: Preemptor) -> bool:
    """Returns False where only pods end that are no less important: for these everybody waits alike."""
    return any(pod.priority < preemptor.priority for pod in eviction.pods)
