"""Taking the startup taint off nodes: as long as they have it, autoscalers do not count them as ready.

Whoever makes the nodes puts the taint on them from the first moment. The operator takes it off as soon as the
node shows the units that its plugin has registered, or no policy wants its cards.
"""

from collections.abc import Iterator

from gpushare_core.api.enums import StartupTaintHandling
from gpushare_core.api.names import REGISTERED
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.actions import RemoveStartupTaint
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.dialect_names import recorded_dialect, shows_units
from gpushare_operator.decide.nodes.node_assignment import Claimants, assign_node, claimants_of


def remove_startup_taints(snapshot: ClusterSnapshot) -> Iterator[RemoveStartupTaint]:
    yield from (_removal(node) for node in snapshot.traits.tainted if _is_offered(snapshot, node))
    yield from remove_unclaimed_taints(snapshot)


def remove_unclaimed_taints(snapshot: ClusterSnapshot) -> Iterator[RemoveStartupTaint]:
    yield from (_removal(node) for node in unclaimed_tainted_nodes(snapshot))


def unclaimed_tainted_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the tainted nodes that no policy wants; none if no policy takes the taint off."""
    tainted = snapshot.traits.tainted
    if not tainted or not any(_removes(policy) for policy in snapshot.policies.values()):
        return []
    claimants = [claimants_of(snapshot, policy) for policy in snapshot.policies.values()]
    states = snapshot.states
    return [
        node for node in tainted if not any(_is_wanted(states[node.name], policies) for policies in claimants)
    ]


def _is_wanted(state: ObservedState, claimants: Claimants) -> bool:
    assignment = assign_node(state, claimants)
    return assignment.is_sharing or bool(assignment.waits_for)


def _is_offered(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    """Returns whether the node shows what its plugin has registered for the present generation, under a
    policy that takes the taint off. The GPUShareNode may be of an earlier Node of that name."""
    share = snapshot.share_nodes.get(node.name)
    if share is None or share.deleting or share.observed_generation != share.generation:
        return False
    policy, registered = snapshot.policies.get(share.policy), share.conditions.get(REGISTERED)
    is_registered = policy and _removes(policy) and registered and registered.status == "True"
    return bool(is_registered) and shows_units(node, DIALECTS.get(share.dialect) or recorded_dialect(node))


def _removes(policy: PolicyObject) -> bool:
    return policy.spec is not None and policy.spec.startup_taint is StartupTaintHandling.REMOVE


def _removal(node: NodeObject) -> RemoveStartupTaint:
    if node.startup_taint is None:
        raise ValueError(f"node {node.name} has no startup taint")
    taint = node.startup_taint
    return RemoveStartupTaint(node.name, node.uid, taint.resource_version, taint.others)
