"""What the operator notes of excesses of memory: since when it sees them, and what came of evictions."""

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gpushare_core.api.events import new_event, pod_object
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube.backoff import backoff_delay
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import EvictPod
from gpushare_operator.apply import Failure, Performed
from gpushare_operator.cluster.labels import MANAGER
from gpushare_operator.cluster.objects import ExcessKey
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.evictions import LOOK_AGAIN_SECONDS, KnownExcesses, excesses_by_node

MAX_RETRY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class EvictionResult(StrEnum):
    """Label of the metric."""

    EVICTED = "Evicted"
    PROTECTED = "Protected"
    """By a PodDisruptionBudget, or the API server was too busy: it is tried again."""
    GONE = "Gone"
    """No pod has this UID any more, or it is a static pod's, which is not that of its mirror, or its
    namespace is being deleted."""
    FAILED = "Failed"


EVENT_REASONS = {
    EvictionResult.EVICTED: "EvictedForMemory",
    EvictionResult.PROTECTED: "EvictionForMemoryRefused",
}


@dataclass(frozen=True, slots=True)
class _Refusal:
    policy: str
    attempts: int
    again: float
    """When the pod may be tried again, by our clock."""
    why: str


@dataclass(slots=True)
class Evictions:
    """``clock``: of durations, in seconds. ``attempted`` is called with the outcome of every attempt."""

    clock: Callable[[], float]
    attempted: Callable[[EvictionResult], None] = lambda _: None
    _first_seen: dict[ExcessKey, float] = field(default_factory=dict, init=False)
    _refusals: dict[str, _Refusal] = field(default_factory=dict, init=False)
    """By UID of the pod."""
    _done: set[str] = field(default_factory=set, init=False)
    """UIDs of pods."""
    _next_round: float = field(default=float("-inf"), init=False)

    def known(self, snapshot: ClusterSnapshot, renewed: Callable[[str], datetime | None]) -> KnownExcesses:
        """Notes the excesses in ``snapshot`` and returns what is known of them. ``renewed`` returns when the
        plugin of a node last renewed its Lease."""
        now, by_node = self.clock(), excesses_by_node(snapshot)
        present = [excess for excesses in by_node.values() for excess in excesses]
        uids = {excess.uid for excess in present}
        self._first_seen = {excess.key: self._first_seen.get(excess.key, now) for excess in present}
        self._refusals = {uid: refusal for uid, refusal in self._refusals.items() if uid in uids}
        self._done &= uids
        return KnownExcesses(
            seconds={key: now - first for key, first in self._first_seen.items()},
            renewed={name: moment for name in by_node if (moment := renewed(name))},
            waits={uid: refusal.again - now for uid, refusal in self._refusals.items()},
            done=frozenset(self._done),
            pause=self._next_round - now,
        )

    def keep(self, policy: str, wanted: Collection[str]) -> None:
        """Forgets refusals of pods that ``policy`` does not want evicted any more. ``wanted``: UIDs."""
        self._refusals = {
            uid: refusal
            for uid, refusal in self._refusals.items()
            if refusal.policy != policy or uid in wanted
        }

    def refused(self, policy: str) -> list[str]:
        """Returns, in words, the evictions for ``policy`` that were refused and are tried again."""
        return sorted(refusal.why for refusal in self._refusals.values() if refusal.policy == policy)

    def conclude(self, performed: Performed, now: datetime) -> list[Json]:
        """Notes the outcomes of the evictions in ``performed``; returns Events about their pods."""
        failures = {failure.action: failure for failure in performed.failures}
        tried = [action for action in performed.tried if isinstance(action, EvictPod)]
        if tried:
            self._next_round = self.clock() + LOOK_AGAIN_SECONDS
        return [event for action in tried for event in self._conclude(action, failures.get(action), now)]

    def _conclude(self, action: EvictPod, failure: Failure | None, now: datetime) -> Iterator[Json]:
        outcome = _outcome(failure)
        self.attempted(outcome)
        if failure is None or outcome is EvictionResult.GONE:
            self._done.add(action.excess.uid)
            self._refusals.pop(action.excess.uid, None)
        else:
            self._note_refusal(action, failure)
        if outcome is EvictionResult.GONE:
            _log.info("pod %s is not evicted: it is gone, is being deleted, or is static", action.name)
        if outcome in EVENT_REASONS:
            yield _event(action, outcome, failure, now)

    def _note_refusal(self, action: EvictPod, failure: Failure) -> None:
        uid = action.excess.uid
        attempts = self._refusals[uid].attempts + 1 if uid in self._refusals else 1
        delay = backoff_delay(attempts, first=LOOK_AGAIN_SECONDS, most=MAX_RETRY_SECONDS)
        self._refusals[uid] = _Refusal(action.policy, attempts, self.clock() + delay, str(failure))
        _log.log(
            logging.WARNING if attempts == 1 else logging.DEBUG, "trying again in %.0f s: %s", delay, failure
        )


def _outcome(failure: Failure | None) -> EvictionResult:
    if failure is None:
        return EvictionResult.EVICTED
    if failure.is_protected:
        return EvictionResult.PROTECTED
    is_gone = failure.is_outdated or _is_namespace_going(failure.error)
    return EvictionResult.GONE if is_gone else EvictionResult.FAILED


def _is_namespace_going(error: Exception) -> bool:
    """The API server takes nothing new in such a namespace, and deletes its pods."""
    return isinstance(error, ApiError) and error.is_forbidden and "it is being terminated" in error.message


def _event(action: EvictPod, outcome: EvictionResult, failure: Failure | None, now: datetime) -> Json:
    excess = action.excess
    return new_event(
        regarding=pod_object(namespace=excess.namespace, name=excess.pod, uid=excess.uid),
        type_="Warning",
        reason=EVENT_REASONS[outcome],
        action="Evict",
        note=f"{action.why}: {_consequence(action, failure)}",
        seed=f"{excess.uid}/{excess.container}/{excess.card}/{rfc3339(excess.since)}/{outcome}",
        controller=MANAGER,
        now=now,
    )


def _consequence(action: EvictPod, failure: Failure | None) -> str:
    by = f"isolation.onExcess Evict of policy {action.policy}"
    advice = "ask for more, or limit what the program uses"
    if failure is None:
        return f"its pod is evicted, by {by}; {advice}"
    why = failure.error.message if isinstance(failure.error, ApiError) else str(failure.error)
    return f"its pod should be evicted, by {by}, but the API server refuses for now: {why}; {advice}"
