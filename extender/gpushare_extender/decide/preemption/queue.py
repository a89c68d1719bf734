"""When a refused pod is to be looked at: whether evicting others would help it. Pure.

kube-scheduler goes first: right after a refusal it looks for pods to preempt itself, and asks the preempt
verb about those it finds. Only a pod for which it found none is looked at here.
"""

from dataclasses import dataclass

from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.fit.candidates import may_be_sampled
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender.decide.remembered_pods import RememberedPods

SCHEDULER_SECONDS = 0.5
"""In which kube-scheduler asks the preempt verb after a refusal, if it does."""
SCHEDULER_EVICTS_SECONDS = 30.0
"""After a response with victims kube-scheduler is left alone for so long."""
STALE_SECONDS = 15.0
"""So long after a refusal kube-scheduler has to look at the pod again before anything is evicted for it."""
TURN_SECONDS = 15.0
"""A pod that has to wait for evictions has its turn for so long: it is looked at again before it ends."""
GONE_SECONDS = 600.0
"""kube-scheduler tries a pod again after 5 minutes at the latest: a pod not refused for so long is bound
elsewhere, or gone."""
MAX_PODS = 1024
"""First the least important pods are forgotten that were looked at often enough, then the least important of
all."""
ENOUGH_ATTEMPTS = 8
"""After which a pod makes way for any other: it seems that nothing helps it. By then it was looked at with
other nodes each time, also with those that kube-scheduler had not offered at first."""
MAX_LOOKS = 32
"""Looks that follow one another soon where a pod has many nodes and nothing is found: with growing delays the
last of 500 nodes had its turn after hours."""


Rank = tuple[float, str]
"""Of a node among those of one pod: the least has the most room on a card."""


@dataclass(slots=True)
class Preemptor:
    """A pod that fits none of the nodes that kube-scheduler finds fit."""

    pod: PodReference
    request: PodRequest
    priority: int
    nodes: tuple[str, ...] = ()
    """Of the nodes that it was offered last: those that might take it if others went."""
    offered: int = 0
    """How many nodes it was offered last."""
    refused: float = 0.0
    """When that was."""
    due: float = 0.0
    """When it is to be looked at."""
    attempts: int = 0
    """How often it was looked at. Looks that follow soon, at other nodes or for its turn, count as one."""
    reached: Rank = (float("-inf"), "")
    """The last of its nodes that was looked at."""
    looks_left: int = MAX_LOOKS - 1
    """How many more looks may follow soon."""
    is_activated: bool = False
    """Whether kube-scheduler was made to offer the nodes that are fit now: then the pod is looked at at
    once."""
    left_until: float = 0.0
    """kube-scheduler evicts pods for it until then."""
    is_interrupted: bool = False
    """Whether pods are in the way, on the card that is held for it, that could not be evicted yet."""
    budgets_reported: bool = False
    """Whether an Event has said that budgets protect the pods that could be evicted for it."""

    @property
    def may_be_sampled(self) -> bool:
        """Whether there may be fit nodes that it was not offered."""
        return may_be_sampled(self.offered)

    def is_stale(self, *, now: float) -> bool:
        """Whether its nodes may be unfit by now for reasons that only kube-scheduler knows."""
        return now - self.refused > STALE_SECONDS


class PreemptionQueue:
    """By pod UID. Use from one thread. Moments are in seconds of one clock."""

    def __init__(self, most: int = MAX_PODS) -> None:
        self._preemptors = RememberedPods[Preemptor](most)

    def refused(self, preemptor: Preemptor, *, now: float) -> None:
        """The pod fits nowhere, but may fit ``preemptor.nodes`` if others go."""
        known = self._preemptors.setdefault(preemptor.pod.uid, preemptor)
        known.nodes, known.offered = preemptor.nodes, preemptor.offered
        known.request, known.refused = preemptor.request, now
        soon = now + SCHEDULER_SECONDS
        known.due, known.is_activated = soon if known.is_activated else max(known.due, soon), False
        self._preemptors.move_to_end(preemptor.pod.uid)
        # Else those that were more important and are gone would keep all others out for ever.
        self._preemptors.forget_while(lambda preemptor: now - preemptor.refused > GONE_SECONDS)
        if len(self._preemptors) > self._preemptors.most:
            del self._preemptors[self._least().pod.uid]

    def _least(self) -> Preemptor:
        """Returns the pod that makes way, the first that applies:

        1. Of those looked at often enough, the least important one; of several the one looked at most often.
        2. Of the least important ones the one refused last. kube-scheduler tries all of them in the same
           order each time: if the one refused longest ago went, nobody would be looked at twice.
        """
        everybody = self._preemptors.values()
        if seen := [preemptor for preemptor in everybody if preemptor.attempts >= ENOUGH_ATTEMPTS]:
            return min(seen, key=lambda preemptor: (preemptor.priority, -preemptor.attempts))
        lowest = min(preemptor.priority for preemptor in everybody)
        return [preemptor for preemptor in everybody if preemptor.priority == lowest][-1]

    def settled(self, uid: str) -> None:
        """The pod fits somewhere, or needs no node."""
        self._preemptors.pop(uid, None)

    def was_tried(self, uid: str, *, since: float) -> bool:
        """Returns whether kube-scheduler has tried the pod since that moment; True for an unknown pod."""
        preemptor = self._preemptors.get(uid)
        return preemptor is None or preemptor.refused >= since

    def is_evicting(self, uid: str) -> bool:
        """Returns whether the extender itself is evicting others for the pod."""
        preemptor = self._preemptors.get(uid)
        return preemptor is not None and preemptor.is_interrupted

    def left_to_scheduler(self, uid: str, *, now: float) -> None:
        """kube-scheduler got victims for the pod, and evicts them itself."""
        if preemptor := self._preemptors.get(uid):
            preemptor.left_until = now + SCHEDULER_EVICTS_SECONDS

    def due(self, *, now: float) -> list[Preemptor]:
        """Returns those to be looked at, highest priority first."""
        found = [preemptor for preemptor in self._preemptors.values() if preemptor.due <= now]
        return sorted(found, key=lambda preemptor: -preemptor.priority)

    def looked_at(self, preemptor: Preemptor, *, again: float) -> None:
        preemptor.attempts += 1
        preemptor.due = again

    def has_to_wait(self, preemptor: Preemptor, *, again: float) -> None:
        """The look just taken has found whom to evict, but it is not the pod's turn yet. It is taken again at
        the moment ``again``, and both count once."""
        preemptor.attempts -= 1
        preemptor.due = again

    def go_on(self, preemptor: Preemptor, *, again: float) -> None:
        """The look just taken goes on with other nodes at the moment ``again``."""
        preemptor.attempts -= 1
        preemptor.looks_left -= 1
        preemptor.due = again


class EvictionRate:
    """At most so many evictions a minute."""

    def __init__(self, most: int = 60) -> None:
        self._most = most
        self._moments: list[float] = []
        self._next: tuple[Preemptor, float] | None = None
        """Whose turn it is, and until when that counts unless it asks again."""

    def allows(self, evictions: int, *, now: float, preemptor: Preemptor | None = None) -> bool:
        """Returns whether so many more may be sent now, for ``preemptor``. A preemption that needs more than
        are allowed in a minute goes alone.

        While one preemptor waits for its turn, others that are no more important get none: with a few
        evictions each time they would keep it waiting for ever.
        """
        self._moments = [moment for moment in self._moments if now - moment < 60.0]
        if preemptor is None:
            return self._is_few(evictions)
        if self._goes_before(preemptor, now=now):
            return False
        is_few = self._is_few(evictions)
        if self.is_next(preemptor) or not is_few:  # its turn ends with the first eviction, not before
            self._next = preemptor, now + TURN_SECONDS
        return is_few

    def is_next(self, preemptor: Preemptor) -> bool:
        """Returns whether it is its turn: it asks again soon."""
        return self._next is not None and self._next[0] is preemptor

    def _is_few(self, evictions: int) -> bool:
        return not self._moments or len(self._moments) + evictions <= self._most

    def _goes_before(self, preemptor: Preemptor, *, now: float) -> bool:
        """Returns whether it is another one's turn."""
        if self._next is None:
            return False
        first, until = self._next
        return now < until and first is not preemptor and first.priority >= preemptor.priority

    def sent(self, *, now: float, preemptor: Preemptor | None = None) -> None:
        self._moments.append(now)
        if preemptor is not None and self.is_next(preemptor):
            self._next = None
