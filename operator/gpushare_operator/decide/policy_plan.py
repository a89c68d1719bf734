"""What is to be done now for one policy."""

from collections.abc import Iterator
from datetime import datetime

from gpushare_core.api.names import FINALIZER
from gpushare_core.json_object import Json
from gpushare_operator.cluster.objects import DaemonSetObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    DeleteShareNode,
    Plan,
    SetFinalizers,
)
from gpushare_operator.decide.leftovers import Teardown, remove_labels
from gpushare_operator.decide.node_assignment import Assignment, assign
from gpushare_operator.decide.node_labels import (
    clear_former_dialects,
    desired_nodes,
    label_nodes,
    show_counts,
)
from gpushare_operator.decide.policy_problems import is_served
from gpushare_operator.decide.teardown import Scope, plan_teardown
from gpushare_operator.desired.daemon_sets import plugin_daemon_set
from gpushare_operator.desired.drift import covers, has_drifted
from gpushare_operator.desired.names import Installation, plugin_name
from gpushare_operator.desired.plugin_platform import PluginPlatform
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.share_nodes import share_node, share_node_spec


def plan_policy(snapshot: Snapshot, policy: PolicyObject, installation: Installation, now: datetime) -> Plan:
    """Returns what ``policy`` needs.

    Nothing is touched before the finalizer guarantees that it will be taken back.
    """
    if FINALIZER not in policy.finalizers:
        return Plan() if policy.deleting else _add_finalizer(policy)
    if policy.deleting:
        teardown = Teardown(snapshot=snapshot, policy=policy.name, installation=installation, now=now)
        return plan_teardown(teardown, Scope.POLICY)
    assignment = assign(snapshot, policy)
    desired = desired_nodes(snapshot, policy, assignment)
    return Plan(
        (
            *_run_plugin(snapshot, policy, assignment, installation),
            *_apply_share_nodes(snapshot, policy, assignment),
            *clear_former_dialects(desired),
            *label_nodes(policy.name, desired),
            *show_counts(desired),
            *_release_nodes(snapshot, policy, assignment),
        )
    )


def _add_finalizer(policy: PolicyObject) -> Plan:
    finalizers = (*policy.finalizers, FINALIZER)
    return Plan((SetFinalizers(policy.name, policy.resource_version, finalizers),))


def _run_plugin(
    snapshot: Snapshot, policy: PolicyObject, assignment: Assignment, installation: Installation
) -> Iterator[ApplyDaemonSet]:
    if not assignment.sharing:
        return
    name = plugin_name(policy.name)
    present = snapshot.daemon_sets.get(name)
    desired = plugin_daemon_set(policy, installation, _platform(policy, present))
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(name, desired)


def _platform(policy: PolicyObject, present: DaemonSetObject | None) -> PluginPlatform:
    """Returns what is asked for; of a policy that is not served what is in force."""
    if policy.spec is not None and is_served(policy):
        return PluginPlatform.of_spec(policy.spec)
    return PluginPlatform.of_daemon_set(present.body) if present else PluginPlatform()


def _apply_share_nodes(
    snapshot: Snapshot, policy: PolicyObject, assignment: Assignment
) -> Iterator[ApplyShareNode]:
    rules = policy.spec.nodes if policy.spec else []
    # One spec for all nodes of a rule: there can be thousands of them.
    positions = set(assignment.enabled.values())
    specs = {position: share_node_spec(policy, rules[position]) for position in positions}
    hashes = {position: digest(spec) for position, spec in specs.items()}
    for name, position in assignment.enabled.items():
        if not _is_current(snapshot, policy, name, specs[position], hashes[position]):
            yield ApplyShareNode(name, share_node(policy, name, specs[position]))


def _is_current(snapshot: Snapshot, policy: PolicyObject, node: str, spec: Json, spec_hash: str) -> bool:
    """Returns whether there is nothing to apply: one that is going is made anew when it is gone.

    A newer CRD may fill in fields that this version does not know: they are not its own to take away.
    """
    share = snapshot.share_nodes.get(node)
    if share is None or share.deleting:
        return share is not None
    return share.owners == (policy.uid,) and share.spec_hash == spec_hash and covers(share.spec, spec)


def _release_nodes(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> Iterator[Action]:
    """Yields what takes the policy off nodes that it had and no longer has: the labels last."""
    sharing = set(assignment.sharing)
    for share in snapshot.share_nodes_of(policy.name):
        if share.name not in sharing and not share.deleting:
            yield DeleteShareNode(share.name, share.uid)
    labelled = snapshot.labelled_nodes(policy.name)
    yield from remove_labels(
        node for node in labelled if node.name not in sharing and node.name not in snapshot.share_nodes
    )
