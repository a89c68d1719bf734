"""Taking a policy back: ``STEPS`` says in which order, what is done, and what each step waits for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from gpushare_core.api.enums import Backend
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide import leftovers
from gpushare_operator.decide.actions import Action, Plan
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.leftovers import EVERY_POLICY, SCHEDULER_CONNECTION, Leftover, Teardown


class Scope(Enum):
    """On whose behalf a step is done."""

    POLICY = auto()
    """Of one policy that is being deleted, or that is gone although something of it is here."""
    SCHEDULER = auto()
    """Of all policies together. Skipped while another policy needs that very backend."""
    NODE = auto()
    """Of each node by itself, as soon as nothing else of ours is there, whatever the other steps wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownStep:
    """One step. The next one begins when this one waits for nothing any more."""

    name: str
    scope: Scope
    backend: Backend | None = None
    """With scope SCHEDULER: of which backend something is taken back."""
    actions: Callable[[Teardown], Iterable[Action]] = lambda _: ()
    """Returns what is to be done now."""
    waiting_for: Callable[[ClusterSnapshot, str], list[Leftover]] = lambda _, __: []
    """Gets the name of the policy; returns what must be gone before the next step."""
    retry_after: Callable[[Teardown], float | None] = lambda _: None
    """Returns the seconds after which something may be due although nothing happened."""


STEPS: tuple[TeardownStep, ...] = (
    # First nothing is offered any more: while units are offered, a scheduler without the extender would put
    # pods on cards that have no room for them.
    TeardownStep(
        name="GPUShareNodes",
        scope=Scope.POLICY,
        actions=leftovers.delete_share_nodes,
        waiting_for=leftovers.share_nodes,
    ),
    # Then the schedulers, while the extender still answers: one that asks an extender that is gone places no
    # pod that shares cards.
    TeardownStep(
        name="schedulers restored",
        scope=Scope.SCHEDULER,
        backend=Backend.KUBE_SCHEDULER,
        actions=leftovers.restore_schedulers,
        waiting_for=leftovers.edited_schedulers,
        retry_after=leftovers.next_attempt,
    ),
    # Nobody asks the extender any more. While it stands, every control plane counts as edited.
    TeardownStep(
        name="extender",
        scope=Scope.SCHEDULER,
        backend=Backend.KUBE_SCHEDULER,
        actions=leftovers.delete_extender,
        waiting_for=leftovers.extender,
    ),
    # A mark says that its node may have to be restored, even if all of our objects were deleted: it outlives
    # the restoring.
    TeardownStep(
        name="marks on control-plane nodes",
        scope=Scope.SCHEDULER,
        backend=Backend.KUBE_SCHEDULER,
        actions=leftovers.remove_marks,
        waiting_for=leftovers.marks,
    ),
    # The Jobs outlive the marks: they say that a marked node was restored already.
    TeardownStep(
        name="Jobs",
        scope=Scope.SCHEDULER,
        backend=Backend.KUBE_SCHEDULER,
        actions=leftovers.delete_jobs,
        waiting_for=leftovers.jobs,
    ),
    # The extender's pods go with its DaemonSet; only what follows has to wait until they have stopped.
    TeardownStep(
        name="extender stopped",
        scope=Scope.SCHEDULER,
        backend=Backend.KUBE_SCHEDULER,
        waiting_for=leftovers.stopping_extenders,
    ),
    # People have taken it out of their kube-schedulers, or will: it holds up nobody who shares no cards.
    TeardownStep(
        name="external extender",
        scope=Scope.SCHEDULER,
        backend=Backend.EXTERNAL,
        actions=leftovers.delete_external_extender,
        waiting_for=leftovers.external_extender,
    ),
    TeardownStep(
        name="external extender stopped",
        scope=Scope.SCHEDULER,
        backend=Backend.EXTERNAL,
        waiting_for=leftovers.stopping_external_extenders,
    ),
    TeardownStep(
        name="external marks",
        scope=Scope.SCHEDULER,
        backend=Backend.EXTERNAL,
        actions=leftovers.remove_external_marks,
        waiting_for=leftovers.external_marks,
    ),
    # Nobody else asks its extender, which ends the binds under way.
    TeardownStep(
        name="dedicated scheduler",
        scope=Scope.SCHEDULER,
        backend=Backend.DEDICATED,
        actions=leftovers.delete_dedicated_scheduler,
        waiting_for=leftovers.dedicated_scheduler,
    ),
    TeardownStep(
        name="dedicated scheduler stopped",
        scope=Scope.SCHEDULER,
        backend=Backend.DEDICATED,
        waiting_for=leftovers.stopping_dedicated_schedulers,
    ),
    # The backup goes last: it says what was there before.
    TeardownStep(
        name="Volcano's ConfigMap restored",
        scope=Scope.SCHEDULER,
        backend=Backend.VOLCANO,
        actions=leftovers.restore_volcano,
        waiting_for=leftovers.edited_volcano,
    ),
    # The plugins, when no scheduler counts on them any more; without their labels nodes are as before.
    TeardownStep(
        name="plugins and labels",
        scope=Scope.POLICY,
        actions=leftovers.remove_plugins_and_labels,
        waiting_for=leftovers.plugins_and_labels,
    ),
    # A plugin that still runs would offer it again. With it goes the last label.
    TeardownStep(
        name="capacity on nodes",
        scope=Scope.NODE,
        actions=leftovers.clear_capacity,
        waiting_for=leftovers.capacity,
    ),
    # Nodes that are made later keep theirs: whoever makes them no longer needs it.
    TeardownStep(
        name="startup taints",
        scope=Scope.POLICY,
        actions=leftovers.remove_taints,
        waiting_for=leftovers.startup_taints,
    ),
    # Last the policy itself may go.
    TeardownStep(
        name="finalizer",
        scope=Scope.POLICY,
        actions=leftovers.remove_finalizer,
    ),
)


def plan_teardown(teardown: Teardown, scope: Scope) -> Plan:
    """Returns what is due now of the steps of ``scope``: up to the first step of any scope that waits."""
    actions: list[Action] = []
    for step in _steps(teardown.snapshot):
        if step.scope is scope:
            actions.extend(step.actions(teardown))
        if step.waiting_for(teardown.snapshot, teardown.policy):
            return Plan(tuple(actions), step.retry_after(teardown) if step.scope is scope else None)
    return Plan(tuple(actions))


def plan_disconnection(teardown: Teardown, backend: Backend) -> Plan:
    """Returns what is due now to take one backend back while policies stay in force."""
    actions: list[Action] = []
    for step in STEPS:
        if step.backend is not backend:
            continue
        actions.extend(step.actions(teardown))
        if step.waiting_for(teardown.snapshot, EVERY_POLICY):
            return Plan(tuple(actions), step.retry_after(teardown))
    return Plan(tuple(actions))


def plan_nodes(teardown: Teardown) -> Plan:
    """Returns what is due now on single nodes."""
    steps = [step for step in STEPS if step.scope is Scope.NODE]
    return Plan(tuple(action for step in steps for action in step.actions(teardown)))


def still_there(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    """Returns what must be gone before ``policy`` may go, the scheduler's connection first."""
    waiting = [leftover for step in _steps(snapshot) for leftover in step.waiting_for(snapshot, policy)]
    return sorted(dict.fromkeys(waiting), key=lambda leftover: leftover != SCHEDULER_CONNECTION)


def is_disconnected(snapshot: ClusterSnapshot, backend: Backend) -> bool:
    """Returns whether nothing of ``backend`` is left."""
    steps = [step for step in STEPS if step.backend is backend]
    return not any(step.waiting_for(snapshot, EVERY_POLICY) for step in steps)


def _steps(snapshot: ClusterSnapshot) -> list[TeardownStep]:
    needed = needed_backend(snapshot)
    return [step for step in STEPS if step.backend is None or step.backend is not needed]
