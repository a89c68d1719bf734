"""What is to be done now for one policy."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

from gpushare_core.api.names import FINALIZER, PLUGIN_NODE_LABEL, POLICY_LABEL
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    DeleteShareNode,
    LabelNode,
    Plan,
    SetFinalizers,
)
from gpushare_operator.backends.teardown_step import Scope, Situation
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import DaemonSetObject, PolicyObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.node_assignment import (
    Claimants,
    NodeAssignment,
    assign_node,
    claimants_of,
)
from gpushare_operator.decide.nodes.node_labels import (
    clear_former_dialect,
    desired_node,
    label_node,
    show_counts,
)
from gpushare_operator.decide.teardown.isolation import isolation_files, may_have_more_files
from gpushare_operator.decide.teardown.plugins import clear_counts, remove_own_labels
from gpushare_operator.decide.teardown.steps import plan_teardown
from gpushare_operator.decide.unavailable_plugins import doubt_share_node
from gpushare_operator.desired.drift import Comparisons, has_drifted
from gpushare_operator.desired.names import Installation, plugin_name
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import DEFAULT_PLATFORM, PluginPlatform
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.share_nodes import is_in_force, share_node, share_node_spec

SHARING = "sharing"
"""Counts the nodes that share their cards under the policy."""
SHARED: Entry[Any] = Entry(amounts={SHARING: 1})
"""The entry of a node that needs nothing now, as most nodes do."""
MAX_NODES_TOGETHER = 1000
"""Nodes that go through all stages before the next ones begin: so each gets its GPUShareNode and its labels
in one round, and is examined once for both."""


class Stage(IntEnum):
    """The order of what is done to the nodes of a policy."""

    SHARE_NODE = 0
    FORMER_DIALECT = 1
    LABELS = 2
    COUNTS = 3
    UNAVAILABLE = 4
    RELEASE = 5
    """From here on: what leaves nodes that the policy no longer has, the labels last."""
    RELEASE_COUNTS = 6
    RELEASE_LABELS = 7


NodeActions: TypeAlias = Mapping[Stage, tuple[Action, ...]]
"""What one node needs now."""


@dataclass(frozen=True)
class NodePlanner:
    """Plans what a policy needs on one node. Planners are equal if their policies ask for the same."""

    claimants: Claimants

    def __call__(self, state: ObservedState) -> Entry[NodeActions]:
        assignment = assign_node(state, self.claimants)
        if assignment.is_sharing:
            stages = self._share(state, assignment)
        else:
            stages = _release(state, self.claimants.policy.name)
        actions = {stage: found for stage, due in stages if (found := tuple(due))}
        if not actions:
            return SHARED if assignment.is_sharing else NOTHING
        return Entry(actions, SHARED.amounts if assignment.is_sharing else {})

    def _share(
        self, state: ObservedState, assignment: NodeAssignment
    ) -> Iterator[tuple[Stage, Iterable[Action]]]:
        if assignment.rule is not None:
            yield Stage.SHARE_NODE, self._apply_share_node(state, assignment.rule)
        if desired := desired_node(state, self.claimants, assignment):
            yield Stage.FORMER_DIALECT, clear_former_dialect(desired)
            yield Stage.LABELS, label_node(self.claimants.policy.name, desired)
            yield Stage.COUNTS, show_counts(desired)
        yield Stage.UNAVAILABLE, doubt_share_node(state)

    def is_current(self, state: ObservedState, assignment: NodeAssignment) -> bool:
        return assignment.rule is None or self._is_current(state.share, assignment.rule)

    def _apply_share_node(self, state: ObservedState, rule: int) -> Iterator[ApplyShareNode]:
        policy, (spec, spec_hash) = self.claimants.policy, self._specs[rule]
        if not self._is_current(state.share, rule) or _is_of_another_version(state.share):
            uid = state.share.uid if state.share else ""
            yield ApplyShareNode(state.name, share_node(policy, state.name, spec, spec_hash), uid)

    def _is_current(self, share: ShareNodeObject | None, rule: int) -> bool:
        """Returns whether there is nothing to apply: a GPUShareNode being deleted is made anew later."""
        if share is None or share.deleting:
            return share is not None
        spec, spec_hash = self._specs[rule]
        is_ours = share.owners == (self.claimants.policy.uid,) and share.spec_hash == spec_hash
        return is_ours and self._comparisons.agree(share.spec, spec)

    @cached_property
    def _comparisons(self) -> Comparisons:
        return Comparisons(is_in_force)

    @cached_property
    def _specs(self) -> Sequence[tuple[Json, str]]:
        """Returns one spec, and its hash, for all nodes of a rule: there can be thousands of them."""
        rules = self.claimants.policy.spec.nodes if self.claimants.policy.spec else ()
        specs = (share_node_spec(self.claimants.policy, rule) for rule in rules)
        return [(spec, digest(spec)) for spec in specs]


def _is_of_another_version(share: ShareNodeObject | None) -> bool:
    """Returns whether its label names another version than the operator's, although its spec is the same."""
    return share is not None and not share.deleting and share.version != VERSION


def _release(state: ObservedState, policy: str) -> Iterator[tuple[Stage, Iterable[Action]]]:
    share, node = state.share, state.node
    if share and share.policy == policy and not share.deleting:
        yield Stage.RELEASE, (DeleteShareNode(share.name, share.uid),)
    if node and share is None and node.named_policy == policy:
        yield Stage.RELEASE_COUNTS, clear_counts(node)
        yield Stage.RELEASE_LABELS, (remove_own_labels(node, policy),)


def plan_policy(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, now: datetime
) -> Plan:
    """Returns what ``policy`` needs: first its finalizer, so that all the rest will be taken back.

    An API server that is refused gets nothing new, but what is there can always be taken back, and what a
    plugin that is not heard of has said becomes Unknown there, too.
    """
    refused = snapshot.is_server_too_old
    if FINALIZER not in policy.finalizers:
        finalizers = (*policy.finalizers, FINALIZER)
        add = SetFinalizers(policy.name, policy.resource_version, finalizers)
        return Plan() if policy.deleting or refused else Plan((add,))
    if policy.deleting:
        situation = Situation(snapshot=snapshot, policy=policy.name, installation=installation, now=now)
        return plan_teardown(situation, Scope.POLICY)
    claimants = claimants_of(snapshot, policy)
    nodes = snapshot.index(NodePlanner(claimants), subject=policy.name)
    if refused:
        doubts = (actions.get(Stage.UNAVAILABLE, ()) for _, actions in sorted(nodes.results.items()))
        return Plan((*chain.from_iterable(doubts),))
    plugin = [*_run_plugin(snapshot, policy, installation)] if nodes.sums.get(SHARING) else []
    if any(map(_marks_node, nodes.results.values())):
        plugin = [apply for apply in plugin if not _loses_nodes(snapshot, apply)]
    # The plugin last: once its DaemonSet is there, each new label makes the DaemonSet controller go through
    # all nodes and start a pod, which slows down the labelling of the other nodes.
    return Plan((*_in_order(_without_kept_plugins(snapshot, policy, nodes.results)), *plugin))


def _without_kept_plugins(
    snapshot: ClusterSnapshot, policy: PolicyObject, by_node: Mapping[str, NodeActions]
) -> Mapping[str, NodeActions]:
    """Returns ``by_node`` without taking the plugin from nodes that share no longer, while containers there
    need files that only a plugin removes. Another policy's plugin does that, too."""
    kept = {
        name
        for name in isolation_files(snapshot, policy.name)
        if Stage.RELEASE_LABELS in by_node.get(name, {}) and not _goes_to_another(snapshot, policy, name)
    }
    if policy.leaves_isolation_files or not kept:
        return by_node
    return {name: actions for name, actions in by_node.items() if name not in kept}


def _goes_to_another(snapshot: ClusterSnapshot, policy: PolicyObject, node: str) -> bool:
    others = (other for other in snapshot.policies.values() if other.name != policy.name)
    assignments = (assign_node(snapshot.states[node], claimants_of(snapshot, other)) for other in others)
    return any(assignment.waits_for for assignment in assignments)


def _marks_node(actions: NodeActions) -> bool:
    """Returns whether the node is to get the label by which plugins are placed."""
    labels = (action.labels for action in actions.get(Stage.LABELS, ()) if isinstance(action, LabelNode))
    return any(PLUGIN_NODE_LABEL in changes for changes in labels)


def _loses_nodes(snapshot: ClusterSnapshot, apply: ApplyDaemonSet) -> bool:
    """Returns whether the present DaemonSet selects nodes by the label of earlier versions: once it is
    changed, plugins end on nodes that lack the present label."""
    present = snapshot.daemon_sets.get(apply.name)
    body = present.body if present else {}
    pod = body.get("spec", {}).get("template", {}).get("spec", {})
    return POLICY_LABEL in pod.get("nodeSelector", {})


def _in_order(by_node: Mapping[str, NodeActions]) -> Iterator[Action]:
    """Yields stage after stage: the applier makes calls of one kind at the same time."""
    in_order = [actions for _, actions in sorted(by_node.items())]
    for begin in range(0, len(in_order), MAX_NODES_TOGETHER):
        for stage in Stage:
            for actions in in_order[begin : begin + MAX_NODES_TOGETHER]:
                yield from actions.get(stage, ())


def _run_plugin(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation
) -> Iterator[ApplyDaemonSet]:
    name = plugin_name(policy.name)
    present = snapshot.daemon_sets.get(name)
    desired = plugin_daemon_set(policy, installation, _platform(snapshot, policy, present))
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(name, desired)


def _platform(
    snapshot: ClusterSnapshot, policy: PolicyObject, present: DaemonSetObject | None
) -> PluginPlatform:
    """Returns the desired platform; for a policy that cannot be read, the one in force.

    Plugins keep the folder of isolation until they have removed what containers were given.
    """
    in_force = PluginPlatform.of_daemon_set(present.body) if present else DEFAULT_PLATFORM
    if policy.spec is None:
        return in_force
    has_files = bool(isolation_files(snapshot, policy.name)) or may_have_more_files(snapshot, policy.name)
    return PluginPlatform.of_spec(policy.spec, has_isolation_files=has_files)
