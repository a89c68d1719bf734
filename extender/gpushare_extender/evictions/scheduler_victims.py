"""The preempt verb: what kube-scheduler would evict, completed so that it frees a card."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.scheduling.preemption.victims import NodeWithout
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.decide.preemption.nomination import fits_once_gone, hold_for
from gpushare_extender.decide.preemption.proposals import Completed, NodeToFree, Proposal, complete
from gpushare_extender.decide.preemption.queue import PreemptionQueue
from gpushare_extender.evictions.node_pods import NodePodReader

MAX_NODES = 16
"""That are looked at at a time. One on which something helps is enough; kube-scheduler chooses among those it
gets."""
LOOK_SECONDS = 1.0
"""For so long further nodes are looked at where nothing helps: kube-scheduler waits for the response."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerVictims:
    """Answers the verb from the ledger and the pods that the API server has."""

    ledger: Ledger
    reader: NodePodReader
    preemptors: PreemptionQueue
    ending: EndingPods
    clock: Callable[[], float]

    async def complete(self, pod: KubePod, proposals: Mapping[str, Proposal]) -> dict[str, Proposal]:
        """Returns the node on which the fewest pods go, and what to evict there so that ``pod`` fits a card.

        Only one node: so it is known which node kube-scheduler nominates, and what becomes free there is held
        for the pod from now on. Empty where nothing helps, and while the units held for the pod are about to
        become free.
        """
        request = pod.request(self.ledger.resources)
        if not request.resources:
            return dict(proposals)
        if self.ledger.holds.get(pod.metadata.uid):
            if await self._is_on_its_way(pod, request):
                return {}
            self.ledger.end_hold(pod.metadata.uid)
        completed = await self._completed(pod, request, proposals)
        if not completed:
            return {}
        best = min(completed, key=lambda name: completed[name].cost)
        self.preemptors.left_to_scheduler(pod.metadata.uid, now=self.clock())
        hold_for(self.ledger, pod, request, node=best, ending=completed[best].victims, now=self.clock())
        return {best: completed[best].proposal}

    async def _is_on_its_way(self, pod: KubePod, request: PodRequest) -> bool:
        """Returns whether the units held for the pod become free without another eviction: kube-scheduler may
        have failed to evict its victims."""
        hold = self.ledger.holds.get(pod.metadata.uid)
        if hold is None or self.preemptors.is_evicting(hold.uid):
            return hold is not None
        try:
            pods = await self.reader.pods_now(hold.node)
        except (ApiError, UnreachableError) as error:
            _log.warning(
                "cannot read which pods of the node are terminating: %s", error, extra={"node": hold.node}
            )
            return True
        ending = self.ending.of(hold.node, pods, now=self.clock())
        return fits_once_gone(self.ledger, pod, request, node=hold.node, ending=ending)

    async def _completed(
        self, pod: KubePod, request: PodRequest, proposals: Mapping[str, Proposal]
    ) -> dict[str, Completed]:
        names, begun = self._most_promising(proposals, request), self.clock()
        try:
            budgets = await self.reader.budgets() if names else []
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot read PodDisruptionBudgets, so no pod is evicted: %s", error)
            return {}
        found: dict[str, Completed] = {}
        for first in range(0, len(names), MAX_NODES):
            some = names[first : first + MAX_NODES]
            looks = (self._of_node(name, pod, request, proposals[name], budgets) for name in some)
            results = zip(some, await asyncio.gather(*looks), strict=True)
            found = {name: completed for name, completed in results if completed is not None}
            if found or self.clock() - begun > LOOK_SECONDS:
                break
        return found

    def _most_promising(self, proposals: Mapping[str, Proposal], request: PodRequest) -> list[str]:
        """Returns the nodes that could take the pod if others went, the fewest victims first."""
        possible = [
            name
            for name in proposals
            if self.ledger.room(name) is not None and self.ledger.unfit_reason(name, request).resolvable
        ]
        greatest = self.ledger.greatest[request.resources[0].name]
        return sorted(possible, key=lambda name: (len(proposals[name].victims), -greatest.get(name, 0)))

    async def _of_node(
        self, name: str, pod: KubePod, request: PodRequest, proposal: Proposal, budgets: Sequence[Budget]
    ) -> Completed | None:
        try:
            pods = await self.reader.pods(name)
        except (ApiError, UnreachableError) as error:
            message = "cannot read the pods of the node, so none is evicted for pod %s: %s"
            _log.warning(message, pod.reference, error, extra={"node": name})
            return None
        node, share_node = self.ledger.node(name), self.ledger.share_node(name)
        if node is None or share_node is None:
            return None
        ending = self.ending.of(name, pods, now=self.clock())
        ignorable = self.ledger.holds.ignorable_for(name, uid=pod.metadata.uid, priority=pod.priority)
        to_free = NodeToFree(
            NodeWithout(name, node, request, ignorable),
            pods,
            self.ledger.unreleased(name) | {other.uid for other in ending},
            pod.priority,
            budgets,
        )
        made = complete(proposal, to_free, may_add=share_node.preempts and pod.may_preempt)
        return Completed(made, to_free) if made else None
