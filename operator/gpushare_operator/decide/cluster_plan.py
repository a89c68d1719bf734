"""What is to be done now for all policies together, and for what policies have left behind."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from gpushare_operator.actions import Plan, RemoveStartupTaint
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import Scope, Situation
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import is_placing_by_sums, needed_backend, plan_needed_backend
from gpushare_operator.decide.nodes.startup_taints import remove_startup_taints, remove_unclaimed_taints
from gpushare_operator.decide.teardown.steps import plan_nodes, plan_teardown
from gpushare_operator.desired.names import Installation


def plan_cluster(
    snapshot: ClusterSnapshot, installation: Installation, now: datetime, *, scheduler_waits: float = 0.0
) -> Plan:
    """Returns what the scheduler's connection needs, after ``scheduler_waits`` seconds, and what takes
    leftovers back."""
    situation = Situation(snapshot=snapshot, installation=installation, now=now)
    scheduler = Plan((), scheduler_waits) if scheduler_waits else _plan_scheduler(situation)
    orphaned = (
        plan_teardown(replace(situation, policy=policy), Scope.POLICY)
        for policy in sorted(_orphaned_policies(snapshot))
    )
    leftovers = (action for plan in (*orphaned, plan_nodes(situation)) for action in plan.actions)
    upkeep = (action for backend in BACKENDS.values() for action in backend.upkeep(snapshot))
    taints = _remove_taints(situation)
    return Plan((*upkeep, *scheduler.actions, *leftovers, *taints), scheduler.retry_after)


def _plan_scheduler(situation: Situation) -> Plan:
    needed = needed_backend(situation.snapshot)
    if needed is None:
        return plan_teardown(situation, Scope.SCHEDULER)
    return Plan() if situation.snapshot.is_server_too_old else plan_needed_backend(situation, needed)


def _remove_taints(situation: Situation) -> Iterator[RemoveStartupTaint]:
    """A node that pods would come to by the sums of its cards has to wait for the scheduler, too: its plugin
    can only refuse those that fit no card."""
    snapshot = situation.snapshot
    is_early = bool(snapshot.traits.tainted) and is_placing_by_sums(situation)
    return remove_unclaimed_taints(snapshot) if is_early else remove_startup_taints(snapshot)


def _orphaned_policies(snapshot: ClusterSnapshot) -> set[str]:
    """Returns policies that are gone although something of theirs is here: somebody took off our
    finalizer."""
    names = {*snapshot.traits.policies, *(daemon_set.policy for daemon_set in snapshot.daemon_sets.values())}
    return names - set(snapshot.policies) - {""}
