"""Taking a policy back: ``STEPS`` says in which order, what is done, and what each step waits for."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from gpushare_core.api.names import FINALIZER
from gpushare_operator.cluster.objects import NodeObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import (
    Action,
    ClearCapacity,
    DeleteDaemonSet,
    DeleteJob,
    DeleteShareNode,
    LabelNode,
    Plan,
    SetFinalizers,
)
from gpushare_operator.decide.hostctl_history import earliest_retry, is_done
from gpushare_operator.decide.scheduler import (
    create_due_jobs,
    delete_superseded_jobs,
    mark,
    marked_nodes,
    nodes_to_restore,
    restores,
    scheduler_needed,
)
from gpushare_operator.desired.hostctl_job import HostctlCommand
from gpushare_operator.desired.names import EXTENDER_NAME, Installation, plugin_name
from gpushare_operator.desired.share_nodes import NODE_LABELS

EVERY_POLICY = ""
"""In place of a policy's name."""


class Scope(Enum):
    """On whose behalf a step is done."""

    POLICY = auto()
    """Of one policy that is being deleted, or that is gone although something of it is here."""
    SCHEDULER = auto()
    """Of all policies together. Skipped while another policy needs the scheduler connected."""
    NODE = auto()
    """Of each node by itself, as soon as nothing else of ours is there, whatever the other steps wait for."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """Something that has to be gone before the next step, in words for people."""

    description: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """What the actions of a step are made of."""

    snapshot: Snapshot
    policy: str = EVERY_POLICY
    installation: Installation
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownStep:
    """One step. The next one begins when this one waits for nothing any more."""

    name: str
    scope: Scope
    actions: Callable[[Teardown], Iterable[Action]]
    waiting_for: Callable[[Snapshot, str], list[Remainder]]
    """Gets the name of the policy."""
    retry_after: Callable[[Teardown], float | None] = lambda _: None
    """Returns the seconds after which something may be due although nothing happened."""


def plan_teardown(teardown: Teardown, scope: Scope) -> Plan:
    """Returns what is due now of the steps of ``scope``: up to the first step of any scope that waits."""
    actions: list[Action] = []
    for step in _steps(teardown.snapshot):
        if step.scope is scope:
            actions.extend(step.actions(teardown))
        if step.waiting_for(teardown.snapshot, teardown.policy):
            return Plan(tuple(actions), step.retry_after(teardown) if step.scope is scope else None)
    return Plan(tuple(actions))


def plan_nodes(teardown: Teardown) -> Plan:
    """Returns what is due now on single nodes."""
    steps = [step for step in STEPS if step.scope is Scope.NODE]
    return Plan(tuple(action for step in steps for action in step.actions(teardown)))


def still_there(snapshot: Snapshot, policy: str) -> list[Remainder]:
    """Returns what has to be gone before ``policy`` may go, the scheduler's connection first."""
    waiting = [part for step in _steps(snapshot) for part in step.waiting_for(snapshot, policy)]
    return sorted(dict.fromkeys(waiting), key=lambda part: part != SCHEDULER_CONNECTION)


def is_disconnected(snapshot: Snapshot) -> bool:
    """Returns whether nothing of ours is left at the schedulers."""
    steps = [step for step in STEPS if step.scope is Scope.SCHEDULER]
    return not any(step.waiting_for(snapshot, EVERY_POLICY) for step in steps)


def _steps(snapshot: Snapshot) -> list["TeardownStep"]:
    needed = scheduler_needed(snapshot)
    return [step for step in STEPS if not (needed and step.scope is Scope.SCHEDULER)]


# GPUShareNodes.


def _delete_share_nodes(teardown: Teardown) -> Iterator[DeleteShareNode]:
    for share in _share_nodes(teardown.snapshot, teardown.policy):
        if not share.deleting:
            yield DeleteShareNode(share.name, share.uid)


def _present_share_nodes(snapshot: Snapshot, policy: str) -> list[Remainder]:
    return _remainder("GPUShareNodes", (share.name for share in _share_nodes(snapshot, policy)))


def _share_nodes(snapshot: Snapshot, policy: str) -> list[ShareNodeObject]:
    if policy == EVERY_POLICY:
        return [share for share in snapshot.share_nodes.values() if share.policy]
    return snapshot.share_nodes_of(policy)


# The scheduler's connection.

SCHEDULER_CONNECTION = Remainder("the scheduler's connection")


def _connection_if(present: object) -> list[Remainder]:
    return [SCHEDULER_CONNECTION] if present else []


def _restore_schedulers(teardown: Teardown) -> Iterator[Action]:
    if not _edited_schedulers(teardown.snapshot, teardown.policy):
        return
    yield from create_due_jobs(restores(teardown.snapshot, teardown.now), teardown.installation)
    yield from delete_superseded_jobs(teardown.snapshot)


def _edited_schedulers(snapshot: Snapshot, _: str) -> list[Remainder]:
    nodes = nodes_to_restore(snapshot)
    return _connection_if(any(not is_done(snapshot, node, HostctlCommand.RESTORE) for node in nodes))


def _next_restore(teardown: Teardown) -> float | None:
    return earliest_retry(restores(teardown.snapshot, teardown.now))


def _delete_extender(teardown: Teardown) -> Iterator[DeleteDaemonSet]:
    yield from _delete_daemon_set(teardown.snapshot, EXTENDER_NAME)


def _present_extender(snapshot: Snapshot, _: str) -> list[Remainder]:
    return _connection_if(EXTENDER_NAME in snapshot.daemon_sets)


def _remove_marks(teardown: Teardown) -> Iterator[LabelNode]:
    yield from (mark(node, None) for node in marked_nodes(teardown.snapshot))


def _present_marks(snapshot: Snapshot, _: str) -> list[Remainder]:
    return _connection_if(marked_nodes(snapshot))


def _delete_jobs(teardown: Teardown) -> Iterator[DeleteJob]:
    jobs = teardown.snapshot.jobs.values()
    yield from (DeleteJob(job.name, job.uid) for job in jobs if not job.deleting)


def _present_jobs(snapshot: Snapshot, _: str) -> list[Remainder]:
    return _connection_if(snapshot.jobs)


def _nothing(_: Teardown) -> tuple[Action, ...]:
    return ()


def _stopping_extenders(snapshot: Snapshot, _: str) -> list[Remainder]:
    return _connection_if(_ready_nodes(snapshot, snapshot.extender_pods))


# Plugins and labels.


def _remove_plugins_and_labels(teardown: Teardown) -> Iterator[Action]:
    yield from _delete_daemon_set(teardown.snapshot, plugin_name(teardown.policy))
    for node in teardown.snapshot.labelled_nodes(teardown.policy):
        yield from remove_labels(node)


def _present_plugins_and_labels(snapshot: Snapshot, policy: str) -> list[Remainder]:
    daemon_set = plugin_name(policy)
    running_on = [node for node, policies in snapshot.plugin_policies.items() if policy in policies]
    return [
        *_remainder("DaemonSet", [daemon_set] if daemon_set in snapshot.daemon_sets else []),
        *_remainder("the plugin on", _ready_nodes(snapshot, running_on)),
        *_remainder("labels on", (node.name for node in snapshot.labelled_nodes(policy))),
    ]


def remove_labels(node: NodeObject) -> Iterator[LabelNode]:
    """Yields what takes our labels off ``node``, if it carries any."""
    present = {key: None for key in NODE_LABELS if key in node.labels}
    if present:
        yield LabelNode(node.name, node.uid, present)


# Capacity.


def _clear_capacity(teardown: Teardown) -> Iterator[ClearCapacity]:
    for node in _nodes_with_capacity(teardown.snapshot):
        yield ClearCapacity(node.name, node.uid, node.offered)


def _present_capacity(snapshot: Snapshot, _: str) -> list[Remainder]:
    names = (node.name for node in _nodes_with_capacity(snapshot))
    return _remainder("our resources in the status of", names)


def _nodes_with_capacity(snapshot: Snapshot) -> list[NodeObject]:
    """Returns nodes that still show our resources though no plugin offers any there."""
    return [node for node in snapshot.nodes.values() if node.offered and not snapshot.policies_on(node.name)]


# The finalizer.


def _remove_finalizer(teardown: Teardown) -> Iterator[SetFinalizers]:
    if policy := teardown.snapshot.policies.get(teardown.policy):
        others = tuple(name for name in policy.finalizers if name != FINALIZER)
        yield SetFinalizers(policy.name, policy.resource_version, others)


def _nothing_more(_: Snapshot, __: str) -> list[Remainder]:
    return []


# What several steps use.


def _remainder(description: str, names: Iterable[str]) -> list[Remainder]:
    present = tuple(names)
    return [Remainder(description, present)] if present else []


def _delete_daemon_set(snapshot: Snapshot, name: str) -> Iterator[DeleteDaemonSet]:
    daemon_set = snapshot.daemon_sets.get(name)
    if daemon_set and not daemon_set.deleting:
        yield DeleteDaemonSet(daemon_set.name, daemon_set.uid)


def _ready_nodes(snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Returns those of ``names`` whose kubelet is there: one that is away cannot say that a pod stopped."""
    nodes = (snapshot.nodes.get(name) for name in names)
    return sorted(node.name for node in nodes if node and node.ready)


STEPS: tuple[TeardownStep, ...] = (
    # First nothing is offered any more: while units are offered, a scheduler without the extender would put
    # pods on cards that have no room for them.
    TeardownStep(
        name="GPUShareNodes",
        scope=Scope.POLICY,
        actions=_delete_share_nodes,
        waiting_for=_present_share_nodes,
    ),
    # Then the schedulers, while the extender still answers: one that asks an extender that is gone places no
    # pod that shares cards.
    TeardownStep(
        name="schedulers restored",
        scope=Scope.SCHEDULER,
        actions=_restore_schedulers,
        waiting_for=_edited_schedulers,
        retry_after=_next_restore,
    ),
    # Nobody asks the extender any more. While it stands, every control plane counts as edited.
    TeardownStep(
        name="extender",
        scope=Scope.SCHEDULER,
        actions=_delete_extender,
        waiting_for=_present_extender,
    ),
    # A mark must outlive everything that may still have to be restored.
    TeardownStep(
        name="marks on control-plane nodes",
        scope=Scope.SCHEDULER,
        actions=_remove_marks,
        waiting_for=_present_marks,
    ),
    # The Jobs last of the five: they say that a marked node was restored already.
    TeardownStep(
        name="Jobs",
        scope=Scope.SCHEDULER,
        actions=_delete_jobs,
        waiting_for=_present_jobs,
    ),
    # The extender's pods went with its DaemonSet; only what follows has to wait until they have stopped.
    TeardownStep(
        name="extender stopped",
        scope=Scope.SCHEDULER,
        actions=_nothing,
        waiting_for=_stopping_extenders,
    ),
    # Plugins keep reporting until no scheduler relies on them. The labels select the nodes they run on.
    TeardownStep(
        name="plugins and labels",
        scope=Scope.POLICY,
        actions=_remove_plugins_and_labels,
        waiting_for=_present_plugins_and_labels,
    ),
    # The kubelet never forgets a resource by itself, and a plugin that still runs would offer it again.
    TeardownStep(
        name="capacity on nodes",
        scope=Scope.NODE,
        actions=_clear_capacity,
        waiting_for=_present_capacity,
    ),
    # Last the policy itself may go.
    TeardownStep(
        name="finalizer",
        scope=Scope.POLICY,
        actions=_remove_finalizer,
        waiting_for=_nothing_more,
    ),
)
