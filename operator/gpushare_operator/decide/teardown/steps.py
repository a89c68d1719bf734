"""Taking a policy back: in which order, what is done, and what each step waits for."""

from collections.abc import Iterator

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import FINALIZER
from gpushare_operator.actions import DeleteShareNode, Plan, SetFinalizers
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import (
    EVERY_POLICY,
    SCHEDULER_CONNECTION,
    Leftover,
    Scope,
    Situation,
    TeardownStep,
    due_steps,
    leftovers,
)
from gpushare_operator.cluster.objects import ShareNodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.nodes.startup_taints import remove_unclaimed_taints, unclaimed_tainted_nodes
from gpushare_operator.decide.teardown.capacity import capacity, clear_capacity
from gpushare_operator.decide.teardown.isolation import isolation_files_left
from gpushare_operator.decide.teardown.plugins import plugins_and_labels, remove_plugins_and_labels


def _delete_share_nodes(situation: Situation) -> Iterator[DeleteShareNode]:
    for share in _share_nodes(situation.snapshot, situation.policy):
        if not share.deleting:
            yield DeleteShareNode(share.name, share.uid)


def _share_nodes(snapshot: ClusterSnapshot, policy: str) -> list[ShareNodeObject]:
    if policy == EVERY_POLICY:
        return [share for share in snapshot.share_nodes.values() if share.policy]
    return snapshot.share_nodes_of(policy)


def _remove_finalizer(situation: Situation) -> Iterator[SetFinalizers]:
    if policy := situation.snapshot.policies.get(situation.policy):
        others = tuple(name for name in policy.finalizers if name != FINALIZER)
        yield SetFinalizers(policy.name, policy.resource_version, others)


_FIRST = TeardownStep(
    name="GPUShareNodes",
    scope=Scope.POLICY,
    actions=_delete_share_nodes,
    waiting_for=lambda snapshot, policy: leftovers(
        "GPUShareNodes", (share.name for share in _share_nodes(snapshot, policy))
    ),
)
_LAST = (
    # Containers that run go on without a GPUShareNode, and may start again: what they mount has to be there.
    # Only the plugin knows which of them have ended, and removes it then.
    TeardownStep(name="isolation files", scope=Scope.POLICY, waiting_for=isolation_files_left),
    # The plugins, when no scheduler counts on them any more. Without their labels nodes are as before.
    TeardownStep(
        name="plugins and labels",
        scope=Scope.POLICY,
        actions=remove_plugins_and_labels,
        waiting_for=plugins_and_labels,
    ),
    # A plugin that still runs would offer it again. With the capacity goes the last label.
    TeardownStep(
        name="capacity on nodes",
        scope=Scope.NODE,
        actions=clear_capacity,
        waiting_for=capacity,
    ),
    # Nodes that are made later keep their taint: whoever makes them no longer needs it.
    TeardownStep(
        name="startup taints",
        scope=Scope.POLICY,
        actions=lambda situation: remove_unclaimed_taints(situation.snapshot),
        waiting_for=lambda snapshot, _: leftovers(
            "startup taint on", (node.name for node in unclaimed_tainted_nodes(snapshot))
        ),
    ),
    TeardownStep(name="finalizer", scope=Scope.POLICY, actions=_remove_finalizer),
)


def teardown_steps(needed: Backend | None) -> list[TeardownStep]:
    """Returns all steps in their order, without those of the backend that is ``needed``.

    First nothing is offered any more: while units are offered, a scheduler without the extender would put
    pods on cards without room. Then the schedulers are disconnected while the extender still answers. Then
    the plugins go, once no container needs what they look after, and last the policy's finalizer.
    """
    backends = (backend for backend in BACKENDS.values() if backend.name is not needed)
    return [_FIRST, *(step for backend in backends for step in backend.teardown_steps), *_LAST]


def plan_teardown(situation: Situation, scope: Scope) -> Plan:
    return due_steps(teardown_steps(needed_backend(situation.snapshot)), situation, scope)


def plan_nodes(situation: Situation) -> Plan:
    steps = [step for step in _LAST if step.scope is Scope.NODE]
    return Plan(tuple(action for step in steps for action in step.actions(situation)))


def still_there(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    """Returns what must be gone before ``policy`` may go, the scheduler's connection first."""
    steps = teardown_steps(needed_backend(snapshot))
    waiting = [leftover for step in steps for leftover in step.waiting_for(snapshot, policy)]
    return sorted(dict.fromkeys(waiting), key=lambda leftover: leftover != SCHEDULER_CONNECTION)
