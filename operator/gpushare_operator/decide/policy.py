"""What is to be done now: for one policy, and for what all policies share."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from gpushare_core.api.names import FINALIZER
from gpushare_operator.cluster.objects import NodeView, PolicyView, ShareNodeView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide import scheduler as scheduler_plan
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    ClearCapacity,
    DeleteDaemonSet,
    DeleteShareNode,
    LabelNode,
    Plan,
    SetFinalizers,
)
from gpushare_operator.decide.hostctl_history import Entry, Standing
from gpushare_operator.decide.nodes import Assignment, assign
from gpushare_operator.decide.teardown import awaited, leftovers
from gpushare_operator.desired.daemon_sets import plugin_daemon_set
from gpushare_operator.desired.drift import says
from gpushare_operator.desired.installation import Installation
from gpushare_operator.desired.names import plugin_name
from gpushare_operator.desired.share_nodes import NODE_LABELS, node_labels, share_node, share_node_spec


def plan_policy(snapshot: Snapshot, policy: PolicyView, installation: Installation) -> Plan:
    """What ``policy`` needs. Nothing is touched before the finalizer guarantees that it will be undone."""
    if policy.deleting:
        return Plan(tuple(_take_back(snapshot, policy)))
    if FINALIZER not in policy.finalizers:
        return Plan((_finalizers(policy, (*policy.finalizers, FINALIZER)),))
    assignment = assign(snapshot, policy)
    return Plan(
        (*_enable(snapshot, policy, assignment, installation), *_let_go(snapshot, policy, assignment))
    )


def plan_shared(snapshot: Snapshot, installation: Installation, now: datetime) -> Plan:
    """The scheduler's connection, and what policies have left behind."""
    if snapshot.scheduler_needed:
        actions = list(scheduler_plan.connect(snapshot, installation, now))
        rests = _rests(scheduler_plan.installs(snapshot, now))
    elif any(share.policy for share in snapshot.share_nodes.values()):
        # While units are offered, a scheduler without the extender would put pods on cards unasked.
        actions, rests = [], []
    else:
        actions = list(scheduler_plan.disconnect(snapshot, installation, now))
        rests = _rests(scheduler_plan.restores(snapshot, now))
    orphaned = (action for name in sorted(_orphans(snapshot)) for action in _remove(snapshot, name))
    return Plan((*actions, *orphaned, *_clear(snapshot)), min(rests, default=None))


def _enable(
    snapshot: Snapshot, policy: PolicyView, assignment: Assignment, installation: Installation
) -> Iterator[Action]:
    if assignment.enabled:
        wanted = plugin_daemon_set(policy, installation)
        present = snapshot.daemon_sets.get(wanted["metadata"]["name"])
        if present is None or not (present.deleting or says(present.body, wanted)):
            yield ApplyDaemonSet(wanted["metadata"]["name"], wanted)
    rules = {id(rule): rule for rule in assignment.enabled.values()}
    specs = {key: share_node_spec(policy, rule) for key, rule in rules.items()}
    for name, rule in assignment.enabled.items():
        spec = specs[id(rule)]
        present_share = snapshot.share_nodes.get(name)
        if present_share is None or not (present_share.deleting or _is_current(present_share, policy, spec)):
            yield ApplyShareNode(name, share_node(policy, name, spec))
        yield from _label(snapshot.nodes[name], node_labels(policy, rule))


def _is_current(share: ShareNodeView, policy: PolicyView, spec: dict[str, object]) -> bool:
    return share.owners == (policy.uid,) and share.spec == spec


def _let_go(snapshot: Snapshot, policy: PolicyView, assignment: Assignment) -> Iterator[Action]:
    """Nodes that the policy had and no longer has."""
    for share in snapshot.shared_by(policy.name):
        if share.name not in assignment.enabled and not share.deleting:
            yield DeleteShareNode(share.name, share.uid)
    for node in snapshot.labelled(policy.name):
        if node.name not in assignment.enabled and node.name not in snapshot.share_nodes:
            yield from _unlabel(node)


def _take_back(snapshot: Snapshot, policy: PolicyView) -> Iterator[Action]:
    """Deletion of a policy: its finalizer goes last."""
    if FINALIZER not in policy.finalizers:
        return
    yield from _remove(snapshot, policy.name)
    if not awaited(snapshot, policy):
        rest = tuple(each for each in policy.finalizers if each != FINALIZER)
        yield _finalizers(policy, rest)


def _remove(snapshot: Snapshot, policy: str) -> Iterator[Action]:
    """First nothing is offered any more; then the scheduler is as before; then the plugins go."""
    shares = snapshot.shared_by(policy)
    if shares:
        yield from (DeleteShareNode(share.name, share.uid) for share in shares if not share.deleting)
        return
    if not (snapshot.scheduler_needed or scheduler_plan.is_disconnected(snapshot)):
        return
    daemon_set = snapshot.daemon_sets.get(plugin_name(policy))
    if daemon_set and not daemon_set.deleting:
        yield DeleteDaemonSet(daemon_set.name, daemon_set.uid)
    for node in snapshot.labelled(policy):
        yield from _unlabel(node)


def _orphans(snapshot: Snapshot) -> set[str]:
    """Policies that are gone although something of theirs is here: somebody took off our finalizer."""
    seen = {share.policy for share in snapshot.share_nodes.values()}
    seen |= {each.policy for each in snapshot.daemon_sets.values()}
    seen |= {node.labels.get(NODE_LABELS[0], "") for node in snapshot.nodes.values()}
    return seen - set(snapshot.policies) - {""}


def _clear(snapshot: Snapshot) -> Iterable[ClearCapacity]:
    return [ClearCapacity(node.name, node.uid, node.offered) for node in leftovers(snapshot)]


def _label(node: NodeView, wanted: dict[str, str]) -> Iterator[LabelNode]:
    missing = {key: value for key, value in wanted.items() if node.labels.get(key) != value}
    if missing:
        yield LabelNode(node.name, node.uid, missing)


def _unlabel(node: NodeView) -> Iterator[LabelNode]:
    present = {key: None for key in NODE_LABELS if key in node.labels}
    if present:
        yield LabelNode(node.name, node.uid, present)


def _finalizers(policy: PolicyView, wanted: tuple[str, ...]) -> SetFinalizers:
    return SetFinalizers(policy.name, policy.resource_version, wanted)


def _rests(entries: Iterable[Entry]) -> list[float]:
    return [entry.rest for entry in entries if entry.standing is Standing.RESTING]
