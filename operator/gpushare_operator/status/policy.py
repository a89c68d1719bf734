"""The status of a policy, made from a snapshot."""

from collections.abc import Hashable, Sequence
from datetime import datetime

from gpushare_core.api.conditions import dated_conditions
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import placing_backend
from gpushare_operator.desired.names import Installation
from gpushare_operator.status.conditions.books_agree import books_agree, since_seen
from gpushare_operator.status.conditions.conflicted import conflicted
from gpushare_operator.status.conditions.degraded import (
    api_problems,
    contested_problems,
    degraded,
    eviction_problems,
)
from gpushare_operator.status.conditions.nodes_ready import nodes_ready
from gpushare_operator.status.conditions.ready import deleted_policy_ready, policy_ready, server_refused
from gpushare_operator.status.conditions.scheduler_configured import scheduler_configured, serving_engine
from gpushare_operator.status.conditions.unit_change_blocked import unit_change_blocked, units_refused
from gpushare_operator.status.nodes.node_reports import policy_nodes
from gpushare_operator.status.nodes.other_plugins import other_plugins
from gpushare_operator.status.other_schedulers import with_other_schedulers
from gpushare_operator.status.pods_without_scheduler import pods_without_scheduler
from gpushare_operator.status.refused_pods import refused_pods
from gpushare_operator.status.totals import reported_memory, totals
from gpushare_operator.status.versions import program_versions


def policy_status(
    snapshot: ClusterSnapshot,
    policy: PolicyObject,
    installation: Installation,
    *,
    now: datetime,
    failures: Sequence[str] = (),
    contested: Sequence[str] = (),
    unevicted: Sequence[str] = (),
    is_cut: bool = False,
) -> PolicyStatus:
    """``failures`` are the actions that have just failed, ``contested`` those without a lasting effect,
    ``unevicted`` the evictions that were refused, in words; ``is_cut``: other actions have to wait for the
    next round."""
    nodes = policy_nodes(snapshot, policy, is_cut=is_cut)
    sums = totals(nodes.index.sums, policy.spec.memory_unit if policy.spec else "1Gi")
    situation = Situation(snapshot=snapshot, policy=policy.name, installation=installation, now=now)
    scheduler = scheduler_configured(situation, policy)
    engine = serving_engine(situation, scheduler, policy.status)
    problems = [
        *api_problems(failures),
        *contested_problems(contested),
        *eviction_problems(unevicted),
        *refused_pods(snapshot, policy, installation.namespace),
        *other_plugins(nodes.by_node(lambda report: report.offered_by_others)),
        *pods_without_scheduler(snapshot),
    ]
    states = [
        nodes_ready(snapshot, policy, nodes),
        with_other_schedulers(scheduler, snapshot, engine),
        conflicted(snapshot, policy, nodes),
        unit_change_blocked(nodes),
        degraded(policy, nodes, problems),
        since_seen(books_agree(snapshot, nodes, now), policy.status.conditions),
    ]
    ready = (
        deleted_policy_ready(snapshot, policy, scheduler)
        if policy.deleting
        else server_refused(snapshot)
        or policy_ready(policy, {state.type: state for state in states}, units_refused(nodes))
    )
    before, generation = policy.status.conditions, policy.generation
    return PolicyStatus(
        observed_generation=generation,
        backend=placing_backend(snapshot) or "",
        engine=engine,
        conditions=dated_conditions([ready, *states], before=before, generation=generation, now=now),
        nodes=sums.nodes,
        cards=sums.cards,
        units=sums.units,
        memory=reported_memory(policy.status.memory, sums.memory),
        versions=program_versions(snapshot, nodes.index.sums),
    )


def can_wait(before: PolicyStatus, now: PolicyStatus) -> bool:
    """Returns whether ``now`` is not urgent: only sums and wording are new, such as how many nodes are not
    ready."""
    return _decisive(before) == _decisive(now)


def _decisive(status: PolicyStatus) -> Hashable:
    conditions = tuple(
        (condition.type, condition.status, condition.reason) for condition in status.conditions
    )
    return (status.observed_generation, status.backend, status.engine, conditions)
