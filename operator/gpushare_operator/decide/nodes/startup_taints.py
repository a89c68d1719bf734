"""Taking the startup taint off nodes: as long as they have it, autoscalers do not count them as ready.

Whoever makes the nodes puts it on them, so that no moment is without it. It is off again as soon as nobody
has to be waited for: the node shows the units that its plugin has registered, or no policy wants its cards.
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
from gpushare_operator.decide.nodes.node_assignment import Asked, asked_of, assign_node


def remove_startup_taints(snapshot: ClusterSnapshot) -> Iterator[RemoveStartupTaint]:
    """Yields what is due now, of all policies together."""
    for node in snapshot.traits.tainted:
        if _is_offered(snapshot, node):
            yield _removal(node)
    yield from remove_unclaimed_taints(snapshot)


def remove_unclaimed_taints(snapshot: ClusterSnapshot) -> Iterator[RemoveStartupTaint]:
    yield from (_removal(node) for node in unclaimed_tainted_nodes(snapshot))


def unclaimed_tainted_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns nodes with the taint that no policy wants, if any policy takes it off at all."""
    tainted = snapshot.traits.tainted
    if not tainted or not any(_removes(policy) for policy in snapshot.policies.values()):
        return []
    asked = [asked_of(snapshot, policy) for policy in snapshot.policies.values()]
    states = snapshot.states
    return [node for node in tainted if not any(_is_wanted(states[node.name], each) for each in asked)]


def _is_wanted(state: ObservedState, asked: Asked) -> bool:
    assignment = assign_node(state, asked)
    return assignment.is_sharing or bool(assignment.waits_for)


def _is_offered(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    """Whether the plugin of a policy that takes the taint off has registered what is asked for now, and the
    node shows it. What is said of a Node that was of the same name says nothing of this one."""
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
