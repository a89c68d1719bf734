"""What is remembered of pods between kube-scheduler's attempts to schedule them. Pure."""

import sys
from dataclasses import dataclass, field

from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.fit.filter import FilterResult
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_extender.decide.preemption.queue import PreemptionQueue, Preemptor
from gpushare_extender.decide.waiting.offered_pods import OfferedPods
from gpushare_extender.decide.waiting.other_schedulers import is_name
from gpushare_extender.decide.waiting.sampled_pods import SampledPods
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods

MAX_SCHEDULERS = 64
"""Names that are remembered: a kube-scheduler has one for each of its profiles."""


@dataclass(frozen=True, slots=True)
class SchedulingAttempts:
    """Each attempt begins with a filter. Use from one thread. Moments are in seconds of one clock."""

    unschedulable: UnschedulablePods = field(default_factory=UnschedulablePods)
    offered: OfferedPods = field(default_factory=OfferedPods)
    sampled: SampledPods = field(default_factory=SampledPods)
    preemptors: PreemptionQueue = field(default_factory=PreemptionQueue)
    schedulers: set[str] = field(default_factory=set)
    """``schedulerName`` of the pods that a filter was asked for."""

    def begin(self, pod: KubePod, *, now: float) -> bool:
        """Returns whether the pod is to be offered every node that fits it, in this attempt."""
        if len(self.schedulers) < MAX_SCHEDULERS and is_name(pod.spec.scheduler_name):
            self.schedulers.add(pod.spec.scheduler_name)
        return pod.prefers_nodes or self.offered.is_retry(pod.metadata.uid, now=now)

    def fits(self, uid: str) -> None:
        """At least one node passed the filter."""
        self.unschedulable.settled(uid)
        self.preemptors.settled(uid)
        self.sampled.settled(uid)

    def fits_nowhere(
        self,
        pod: KubePod,
        request: PodRequest,
        names: list[str],
        result: FilterResult,
        ledger: Ledger,
        now: float,
    ) -> FilterResult:
        """No node of ``names`` passed the filter. Returns the result to answer.

        The pod is to be tried again once there is room for it, unless the pod itself is the reason: then
        kube-scheduler tries it again when the pod is changed. Whether pods are evicted for it is decided
        after kube-scheduler's own preemption.
        """
        uid = pod.metadata.uid
        if result.is_for_good:
            self.unschedulable.settled(uid)
        else:
            self.unschedulable.refused(uid, request)
        if pod.may_preempt and result.failed:
            nodes = tuple(map(sys.intern, result.failed))
            preemptor = Preemptor(pod.reference, request, pod.priority, nodes, len(names))
            self.preemptors.refused(preemptor, now=now)
        return self.sampled.searched(result, ledger=ledger, uid=uid, request=request, names=names, now=now)

    def fits_other_nodes(self, uid: str, *, now: float) -> bool:
        """Returns whether the pod fits nodes that it was not offered in this attempt: nobody is evicted for
        it then."""
        return self.offered.has_others(uid, now=now) or self.sampled.is_to_try_again(uid, now=now)
