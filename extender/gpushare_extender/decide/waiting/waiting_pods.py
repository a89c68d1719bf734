"""Which pods wait because they fit no node, since when and why. Pure.

kube-scheduler tries a pod that fits nowhere again at least every five and a half minutes: one that it does
not try any more is gone.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpushare_extender.ledger.unfit_reason import Refusal

GONE_SECONDS = 400.0
"""Without another try. Source: ``podMaxInUnschedulablePodsDuration`` of kube-scheduler, 300 s, looked at
every 30 s."""
MAX_PODS = 4096


class _Waiting(NamedTuple):
    since: float
    tried: float
    reasons: frozenset[Refusal]
    """Of the last try."""


class Waits(NamedTuple):
    """Of one reason."""

    pods: int
    longest: float
    """Seconds."""


NO_WAITS = Waits(0, 0.0)


class WaitingPods:
    """By pod UID; times in steady seconds. Beyond ``MAX_PODS`` those that were tried longest ago are
    forgotten."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Waiting] = OrderedDict()

    def refused(self, uid: str, reasons: Iterable[Refusal], *, now: float) -> None:
        """The pod fits no node, for ``reasons``."""
        before = self._pods.pop(uid, None)
        is_same = before is not None and now - before.tried < GONE_SECONDS
        since = before.since if before and is_same else now
        told = frozenset(reasons)
        # Nodes that share no cards are in nearly every cluster: a reason where there is no other one.
        self._pods[uid] = _Waiting(since, now, told - {Refusal.NOT_SHARED} or told)
        if len(self._pods) > MAX_PODS:
            self._pods.popitem(last=False)

    def settled(self, uid: str) -> None:
        """The pod fits somewhere."""
        self._pods.pop(uid, None)

    def by_reason(self, *, now: float) -> Mapping[Refusal, Waits]:
        """Returns what waits for each reason; one with two reasons counts for both."""
        while self._pods and now - next(iter(self._pods.values())).tried >= GONE_SECONDS:
            self._pods.popitem(last=False)
        found: dict[Refusal, Waits] = {}
        for pod in self._pods.values():
            for reason in pod.reasons:
                pods, longest = found.get(reason, NO_WAITS)
                found[reason] = Waits(pods + 1, max(longest, now - pod.since))
        return found
