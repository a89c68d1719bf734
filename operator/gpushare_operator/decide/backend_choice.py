"""Which of the scheduler backends is needed: there is one connection for all policies."""

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.external import external_hosts
from gpushare_operator.decide.policy_problems import is_served
from gpushare_operator.decide.scheduler import decisive_policy, scheduler_needed
from gpushare_operator.decide.volcano import edited_location
from gpushare_operator.desired.daemon_sets import is_external
from gpushare_operator.desired.names import EXTENDER_NAME


def needed_backend(snapshot: ClusterSnapshot) -> Backend | None:
    """Returns the backend that the oldest policy in force asks for; None when no policy needs one.

    Where that policy cannot be applied, it stays the one that is in force.
    """
    if not scheduler_needed(snapshot):
        return None
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None or not is_served(policy):
        return _backend_in_force(snapshot)
    return policy.spec.scheduler.backend


def _backend_in_force(snapshot: ClusterSnapshot) -> Backend:
    if edited_location(snapshot):
        return Backend.VOLCANO
    if DEDICATED_SCHEDULER in snapshot.deployments:
        return Backend.DEDICATED
    if is_external(snapshot.daemon_sets.get(EXTENDER_NAME)) or external_hosts(snapshot):
        return Backend.EXTERNAL
    return Backend.KUBE_SCHEDULER
