"""Pods that fit a node that kube-scheduler has not looked at, and how it is made to look there. Pure.

Beyond 100 nodes kube-scheduler looks only at some of them for a pod, at others the next time
(``numFeasibleNodesToFind``). A refused pod rests until something in the cluster changes. Its own status does
when kube-scheduler writes another sentence there: so as long as a node has room that it has not offered, each
refusal says something else.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace

from gpushare_core.placement.requests import PodRequest
from gpushare_extender.decide.filter import FilterResult, fits_some_node
from gpushare_extender.decide.preemption_queue import may_be_sampled
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.unfit_reason import Refusal

MOST_PODS = 4096
"""Those that were refused longest ago are forgotten first."""
ROUNDS = 2
"""How often kube-scheduler is to go round all nodes: others may be scheduled between two attempts."""
REMEMBERED_SECONDS = 240.0
"""kube-scheduler tries every pod again after 5 minutes: then the search begins anew."""


@dataclass(slots=True)
class _Search:
    begun: float
    refusals: int = 0


class SampledPods:
    """By pod UID. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self, most: int = MOST_PODS) -> None:
        self._most = most
        self._searches: OrderedDict[str, _Search] = OrderedDict()

    def searched(
        self, result: FilterResult, *, ledger: Ledger, uid: str, request: PodRequest, offered: int, now: float
    ) -> FilterResult:
        """Returns what to answer for a pod that fits none of ``offered`` nodes: ``result``, in other words
        than at the refusal before if it is to be tried again."""
        is_crowded = Refusal.CROWDED_CONTAINER in result.kinds
        if is_crowded or not may_be_sampled(offered) or not fits_some_node(ledger, request):
            self.settled(uid)
            return result
        nodes, refusal = ledger.greatest[request.resources[0].name], self._refused(uid, now=now)
        return _with(result, refusal) if refusal <= ROUNDS * (len(nodes) // offered + 1) else result

    def settled(self, uid: str) -> None:
        """The pod fits a node that it is offered, or none at all."""
        self._searches.pop(uid, None)

    def _refused(self, uid: str, *, now: float) -> int:
        """Returns which refusal of this search it is, from 1 on."""
        search = self._searches.setdefault(uid, _Search(now))
        if now - search.begun > REMEMBERED_SECONDS:
            search.begun, search.refusals = now, 0
        search.refusals += 1
        self._searches.move_to_end(uid)
        if len(self._searches) > self._most:
            self._searches.popitem(last=False)
        return search.refusals


def _with(result: FilterResult, refusal: int) -> FilterResult:
    remark = f" (others with room are looked for, attempt {refusal})"
    return replace(
        result,
        failed={name: message + remark for name, message in result.failed.items()},
        unresolvable={name: message + remark for name, message in result.unresolvable.items()},
    )
