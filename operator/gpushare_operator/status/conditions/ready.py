"""The condition Ready: the ordered checks, and what it says while the policy is taken back."""

from collections.abc import Iterator, Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.kubernetes_minors import RANGE
from gpushare_core.process.version import VERSION
from gpushare_operator.backends.teardown_step import Leftover
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.teardown.steps import still_there
from gpushare_operator.policies import conditions, served
from gpushare_operator.policies.wording import listed


def policy_ready(
    policy: PolicyObject, states: Mapping[str, ConditionState], units_refused: ConditionState | None
) -> ConditionState:
    """Returns True when all of the policy is in force; else the first obstacle, repeated.

    ``states``: the other conditions by type; ``units_refused``: the part of Degraded about units that nodes
    cannot have.
    """
    if obstacle := next(_obstacles(policy, states, units_refused), None):
        return condition_false(conditions.READY, obstacle.reason, obstacle.message)
    return condition_true(conditions.READY, conditions.SERVING, states[conditions.NODES_READY].message)


def server_refused(snapshot: ClusterSnapshot) -> ConditionState | None:
    """Returns False for an API server that is too old, whatever is in force by now; None for all others."""
    if not snapshot.is_server_too_old:
        return None
    message = (
        f"the API server is {snapshot.kubernetes}; gpushare {VERSION} needs Kubernetes {RANGE}: upgrade the"
        " cluster, or install a version of gpushare that serves it; until then the operator creates and"
        " changes nothing for policies; what is installed stays, and deleting a policy removes it"
    )
    return condition_false(conditions.READY, conditions.KUBERNETES_UNSUPPORTED, message)


def deleted_policy_ready(
    snapshot: ClusterSnapshot, policy: PolicyObject, scheduler_configured: ConditionState
) -> ConditionState:
    remaining = ", ".join(map(_in_words, still_there(snapshot, policy.name))) or "nothing"
    message = f"everything is being undone: {scheduler_configured.message}; still there: {remaining}"
    return condition_false(conditions.READY, conditions.DELETING, message)


def _in_words(leftover: Leftover) -> str:
    return f"{leftover.description} {listed(leftover.names)}" if leftover.names else leftover.description


def _obstacles(
    policy: PolicyObject, states: Mapping[str, ConditionState], units_refused: ConditionState | None
) -> Iterator[ConditionState]:
    # A spec that is invalid or not served has to be changed first; the rest may only follow from it.
    if policy.spec is None or served.problems(policy.spec):
        yield states[conditions.DEGRADED]
    # Without a node that shares its cards no pod gets units. Without the scheduler pods would be placed on
    # cards without room.
    for type_ in (conditions.NODES_READY, conditions.SCHEDULER_CONFIGURED):
        if not states[type_].is_true:
            yield states[type_]
    # Pods run, but not with the present unit: it stays refused, whichever pod ends.
    if units_refused:
        yield units_refused
    # Pods run, but with another unit, or not on all nodes of the policy, or with other scheduler settings.
    for type_ in (conditions.UNIT_CHANGE_BLOCKED, conditions.CONFLICTED):
        if states[type_].is_true:
            yield states[type_]
