"""Which pods wait because they fit no node, since when and why. Pure.

kube-scheduler tries a pod that fits nowhere again within five and a half minutes: a pod that it does not try
any more is gone.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpushare_core.scheduling.ledger.unfit_reason import Refusal
from gpushare_extender.decide.remembered_pods import RememberedPods

GONE_SECONDS = 400.0
"""Without another try. Source: ``podMaxInUnschedulablePodsDuration`` of kube-scheduler, 300 s, looked at
every 30 s."""
MAX_PODS = 4096


class _Waiting(NamedTuple):
    since: float
    tried: float
    """When it was tried last."""
    reasons: frozenset[Refusal]


class Waits(NamedTuple):
    """What waits for one reason."""

    pods: int
    longest: float
    """Seconds."""


NO_WAITS = Waits(0, 0.0)


class WaitingPods:
    """Those that were tried last; times in steady seconds."""

    def __init__(self) -> None:
        self._pods = RememberedPods[_Waiting](MAX_PODS)

    def refused(self, uid: str, reasons: Iterable[Refusal], *, now: float) -> None:
        before = self._pods.get(uid)
        is_same = before is not None and now - before.tried < GONE_SECONDS
        since = before.since if before and is_same else now
        known = frozenset(reasons)
        # Nodes that share no cards are in nearly every cluster: a reason where there is no other one.
        self._pods.remember(uid, _Waiting(since, now, known - {Refusal.NOT_SHARED} or known))

    def settled(self, uid: str) -> None:
        """The pod fits somewhere."""
        self._pods.pop(uid, None)

    def by_reason(self, *, now: float) -> Mapping[Refusal, Waits]:
        """A pod with two reasons counts for both."""
        self._pods.forget_while(lambda pod: now - pod.tried >= GONE_SECONDS)
        found: dict[Refusal, Waits] = {}
        for pod in self._pods.values():
            for reason in pod.reasons:
                pods, longest = found.get(reason, NO_WAITS)
                found[reason] = Waits(pods + 1, max(longest, now - pod.since))
        return found
