"""Which policies concern the schedulers, and which of them decides where they differ."""

from gpushare_core.api.names import FINALIZER
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot, oldest_first


def scheduler_needed(snapshot: ClusterSnapshot) -> bool:
    """Returns whether a node shares its cards under a policy that stays and has the operator's finalizer."""
    return any(
        not policy.deleting and FINALIZER in policy.finalizers and snapshot.traits.shares_node(policy)
        for policy in snapshot.policies.values()
    )


def decisive_policy(snapshot: ClusterSnapshot) -> PolicyObject | None:
    """Returns the policy that decides for the schedulers, the first that there is:

    1. the oldest that stays and has nodes that share their cards;
    2. the oldest that stays, so that what others leave behind can be taken back;
    3. the oldest that is being deleted, one with such nodes before one without.
    """
    shares_node = snapshot.traits.shares_node
    return min(
        policies_in_force(snapshot),
        key=lambda policy: (policy.deleting, not shares_node(policy)),
        default=None,
    )


def policies_in_force(snapshot: ClusterSnapshot) -> list[PolicyObject]:
    """Returns the policies that can be read or have nodes that share their cards, the oldest first."""
    shares_node = snapshot.traits.shares_node
    policies = snapshot.policies.values()
    return oldest_first(policy for policy in policies if policy.spec or shares_node(policy))
