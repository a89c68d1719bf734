"""Which pods are to be evicted now, because a container has more memory of a card than it asked for.

A wrong eviction ends somebody's work. So two clocks have to agree that the grace has passed: the operator's
own, since it first saw the excess, and the node's, by a Lease that the plugin renewed after the grace. A
plugin that hangs, was killed, or is cut off renews none, and what it has reported may be over.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpushare_core.api.conditions import TRUE
from gpushare_core.api.enums import OnExcess
from gpushare_core.api.names import MEMORY_EXCEEDED
from gpushare_operator.actions import EvictPod
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import Excess, ExcessKey, PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.node_assignment import Claimants, assign_node, claimants_of
from gpushare_operator.decide.unavailable_plugins import why_unavailable
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.share_nodes import share_node_spec

LOOK_AGAIN_SECONDS = 10.0
"""While the plugin has not renewed its Lease since, and between two rounds of evictions."""
MAX_TOGETHER = 20
"""Evictions in one round, of all policies: a policy with a wrong figure must not empty a cluster at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownExcesses:
    """What the operator itself has noted of excesses."""

    seconds: Mapping[ExcessKey, float] = field(default_factory=dict)
    """Since the operator first saw each, by its own clock."""
    renewed: Mapping[str, datetime] = field(default_factory=dict)
    """Node name -> when its plugin last renewed its Lease, by the node's clock."""
    waits: Mapping[str, float] = field(default_factory=dict)
    """UID of a pod whose eviction was refused -> seconds until the next attempt."""
    done: frozenset[str] = frozenset()
    """UIDs of pods that were evicted, or that no eviction ends."""
    pause: float = 0.0
    """Seconds until the next round of evictions."""


@dataclass(frozen=True, slots=True)
class ExcessFinder:
    """Finds the excesses on a node."""

    def __call__(self, state: ObservedState) -> Entry[tuple[Excess, ...]]:
        return Entry(state.share.excesses) if state.share and state.share.excesses else NOTHING


def excesses_by_node(snapshot: ClusterSnapshot) -> Mapping[str, tuple[Excess, ...]]:
    return snapshot.index(ExcessFinder()).results


@dataclass(frozen=True, slots=True)
class EvictionPlan:
    """The evictions that are due."""

    actions: tuple[EvictPod, ...] = ()
    retry_after: float | None = None
    """Seconds after which more may be due although nothing has changed."""
    wanted: frozenset[str] = frozenset()
    """UIDs of all pods that the policy wants evicted, now or later."""


def plan_evictions(snapshot: ClusterSnapshot, policy: PolicyObject, known: KnownExcesses) -> EvictionPlan:
    """Returns what is due for ``policy``: one eviction for a pod. Those that were refused come last, or a
    hundred pods that budgets protect would keep all others from being tried."""
    due: dict[str, EvictPod] = {}
    waits: dict[str, float] = {}
    claimants = claimants_of(snapshot, policy)
    for name, excesses in sorted(excesses_by_node(snapshot).items()):
        grace = _grace_seconds(snapshot.states[name], claimants)
        if grace is None:
            continue
        for excess in (excess for excess in excesses if excess.uid not in known.done):
            wait = _wait(excess, known, grace, known.renewed.get(name))
            waits[excess.uid] = min(wait or LOOK_AGAIN_SECONDS, waits.get(excess.uid, math.inf))
            if not wait:
                due.setdefault(excess.uid, _eviction(name, policy, excess, known.seconds[excess.key]))
    in_turn = sorted(due.values(), key=lambda action: known.waits.get(action.excess.uid, -math.inf))
    return EvictionPlan(tuple(in_turn[:MAX_TOGETHER]), min(waits.values(), default=None), frozenset(waits))


def _wait(excess: Excess, known: KnownExcesses, grace: int, renewed: datetime | None) -> float:
    """Returns the seconds until the eviction may be due; 0: it is."""
    left = max(grace - known.seconds.get(excess.key, 0.0), known.waits.get(excess.uid, 0.0), known.pause)
    if left > 0:
        return left
    is_confirmed = renewed is not None and renewed - excess.since >= timedelta(seconds=grace)
    return 0.0 if is_confirmed else LOOK_AGAIN_SECONDS


def _grace_seconds(state: ObservedState, claimants: Claimants) -> int | None:
    """Returns the grace on a node, or None where nothing is evicted: the policy does not ask for it there, or
    what the node's plugin has reported may not be true any more."""
    assignment, spec, share = (
        assign_node(state, claimants),
        claimants.policy.spec,
        state.share,
    )
    if spec is None or assignment.rule is None or share is None:
        return None
    rule = spec.nodes[assignment.rule]
    isolation = rule.isolation
    if isolation.on_excess is not OnExcess.EVICT:
        return None
    exceeded = share.conditions.get(MEMORY_EXCEEDED)
    is_reported = exceeded is not None and exceeded.status == TRUE
    is_current = (
        share.observed_generation == share.generation
        and not share.deleting
        and share.spec_hash == digest(share_node_spec(claimants.policy, rule))
    )
    is_heard = state.node is not None and state.node.ready and not why_unavailable(state)
    return isolation.grace_seconds if is_reported and is_current and is_heard else None


def _eviction(node: str, policy: PolicyObject, excess: Excess, seconds: float) -> EvictPod:
    return EvictPod(node=node, policy=policy.name, excess=excess, seconds=int(seconds))
