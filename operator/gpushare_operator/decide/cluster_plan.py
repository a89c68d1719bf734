"""What is to be done now for all policies together, and for what policies have left behind."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.actions import Plan, RemoveStartupTaint
from gpushare_operator.decide.backends import is_placing_by_sums, plan_backends
from gpushare_operator.decide.job_results import record_results
from gpushare_operator.decide.leftovers import Teardown
from gpushare_operator.decide.nodes.startup_taints import remove_startup_taints, remove_unclaimed_taints
from gpushare_operator.decide.teardown import Scope, plan_nodes, plan_teardown
from gpushare_operator.desired.names import Installation


def plan_cluster(
    snapshot: ClusterSnapshot, installation: Installation, now: datetime, *, scheduler_waits: float = 0.0
) -> Plan:
    """Returns what the scheduler's connection needs, after ``scheduler_waits`` seconds, and what takes
    leftovers back."""
    teardown = Teardown(snapshot=snapshot, installation=installation, now=now)
    scheduler = Plan((), scheduler_waits) if scheduler_waits else plan_backends(teardown)
    orphaned = (
        plan_teardown(replace(teardown, policy=policy), Scope.POLICY)
        for policy in sorted(_orphaned_policies(snapshot))
    )
    taints = _remove_taints(snapshot, installation, now)
    leftovers = (action for plan in (*orphaned, plan_nodes(teardown)) for action in plan.actions)
    results = record_results(snapshot)
    return Plan((*results, *scheduler.actions, *leftovers, *taints), scheduler.retry_after)


def _remove_taints(
    snapshot: ClusterSnapshot, installation: Installation, now: datetime
) -> Iterator[RemoveStartupTaint]:
    """A node that pods would come to by the sums of its cards has to wait for the scheduler, too: its plugin
    can only refuse those that fit no card."""
    is_early = bool(snapshot.traits.tainted) and is_placing_by_sums(snapshot, installation, now)
    return remove_unclaimed_taints(snapshot) if is_early else remove_startup_taints(snapshot)


def _orphaned_policies(snapshot: ClusterSnapshot) -> set[str]:
    """Returns policies that are gone although something of theirs is here: somebody took off our
    finalizer."""
    names = {*snapshot.traits.policies, *(daemon_set.policy for daemon_set in snapshot.daemon_sets.values())}
    return names - set(snapshot.policies) - {""}
