"""What is to be done now for one policy."""

from collections.abc import Iterator
from datetime import datetime

from gpushare_core.api.names import FINALIZER
from gpushare_core.json_object import Json
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    DeleteShareNode,
    LabelNode,
    Plan,
    SetFinalizers,
)
from gpushare_operator.decide.leftovers import Teardown, remove_labels
from gpushare_operator.decide.node_assignment import Assignment, assign
from gpushare_operator.decide.teardown import Scope, plan_teardown
from gpushare_operator.desired.daemon_sets import plugin_daemon_set
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.share_nodes import node_labels, share_node, share_node_spec


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
    return Plan(
        (
            *_run_plugin(snapshot, policy, assignment, installation),
            *_enable_nodes(snapshot, policy, assignment),
            *_release_nodes(snapshot, policy, assignment),
        )
    )


def _add_finalizer(policy: PolicyObject) -> Plan:
    finalizers = (*policy.finalizers, FINALIZER)
    return Plan((SetFinalizers(policy.name, policy.resource_version, finalizers),))


def _run_plugin(
    snapshot: Snapshot, policy: PolicyObject, assignment: Assignment, installation: Installation
) -> Iterator[ApplyDaemonSet]:
    if not assignment.enabled:
        return
    desired = plugin_daemon_set(policy, installation)
    name = desired["metadata"]["name"]
    present = snapshot.daemon_sets.get(name)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(name, desired)


def _enable_nodes(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> Iterator[Action]:
    rules = policy.spec.nodes if policy.spec else []
    # One spec for all nodes of a rule: there can be thousands of them.
    positions = set(assignment.enabled.values())
    specs = {position: share_node_spec(policy, rules[position]) for position in positions}
    for name, position in assignment.enabled.items():
        yield from _apply_share_node(snapshot, policy, name, specs[position])
        yield from _add_labels(snapshot.nodes[name], node_labels(policy, rules[position]))


def _apply_share_node(
    snapshot: Snapshot, policy: PolicyObject, node: str, spec: Json
) -> Iterator[ApplyShareNode]:
    present = snapshot.share_nodes.get(node)
    is_current = present is not None and present.owners == (policy.uid,) and present.spec == spec
    if present is None or not (present.deleting or is_current):
        yield ApplyShareNode(node, share_node(policy, node, spec))


def _add_labels(node: NodeObject, desired: dict[str, str]) -> Iterator[LabelNode]:
    missing = {key: value for key, value in desired.items() if node.labels.get(key) != value}
    if missing:
        yield LabelNode(node.name, node.uid, missing)


def _release_nodes(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> Iterator[Action]:
    """Yields what takes the policy off nodes that it had and no longer has: the labels last."""
    for share in snapshot.share_nodes_of(policy.name):
        if share.name not in assignment.enabled and not share.deleting:
            yield DeleteShareNode(share.name, share.uid)
    for node in snapshot.labelled_nodes(policy.name):
        if node.name not in assignment.enabled and node.name not in snapshot.share_nodes:
            yield from remove_labels(node)
