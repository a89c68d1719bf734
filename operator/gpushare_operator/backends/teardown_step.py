"""The steps in which something is taken back: what each does, and what it waits for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from gpushare_operator.actions import Action, DeleteDaemonSet, Plan
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import Installation

EVERY_POLICY = ""
"""In place of a policy's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What plans and conditions are made from: for one policy, or for what all policies share."""

    snapshot: ClusterSnapshot
    policy: str = EVERY_POLICY
    installation: Installation
    now: datetime


@dataclass(frozen=True, slots=True)
class Leftover:
    """What is still there, in words for people."""

    description: str
    names: tuple[str, ...] = ()


SCHEDULER_CONNECTION = Leftover("the scheduler's connection")


class Scope(Enum):
    """For what a step is done."""

    POLICY = auto()
    """For one policy that is being deleted, or that is gone although something of it is still there."""
    SCHEDULER = auto()
    """For all policies together. Skipped while another policy needs the step's backend."""
    NODE = auto()
    """For each node by itself, as soon as it has nothing else of ours, whatever the other steps wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownStep:
    """One step. The next one begins when this one waits for nothing any more."""

    name: str
    scope: Scope
    actions: Callable[[Situation], Iterable[Action]] = lambda _: ()
    """Returns what is to be done now."""
    waiting_for: Callable[[ClusterSnapshot, str], list[Leftover]] = lambda _, __: []
    """Gets the name of the policy; returns what must be gone before the next step begins."""
    retry_after: Callable[[Situation], float | None] = lambda _: None
    """Returns the seconds after which something may be due although nothing has changed."""


def connection_step(
    name: str,
    *,
    left: Callable[[ClusterSnapshot], object],
    actions: Callable[[Situation], Iterable[Action]] = lambda _: (),
    retry_after: Callable[[Situation], float | None] = lambda _: None,
) -> TeardownStep:
    """Returns a step of a backend, which waits while anything is ``left``."""
    return TeardownStep(
        name=name,
        scope=Scope.SCHEDULER,
        actions=actions,
        waiting_for=lambda snapshot, _: [SCHEDULER_CONNECTION] if left(snapshot) else [],
        retry_after=retry_after,
    )


def due_steps(steps: Iterable[TeardownStep], situation: Situation, scope: Scope = Scope.SCHEDULER) -> Plan:
    """Returns what is due now of the steps of ``scope``: up to the first step of any scope that waits."""
    actions: list[Action] = []
    for step in steps:
        if step.scope is scope:
            actions.extend(step.actions(situation))
        if step.waiting_for(situation.snapshot, situation.policy):
            return Plan(tuple(actions), step.retry_after(situation) if step.scope is scope else None)
    return Plan(tuple(actions))


def delete_daemon_set(snapshot: ClusterSnapshot, name: str) -> Iterable[DeleteDaemonSet]:
    daemon_set = snapshot.daemon_sets.get(name)
    if daemon_set and not daemon_set.deleting:
        yield DeleteDaemonSet(daemon_set.name, daemon_set.uid)


def ready_nodes(snapshot: ClusterSnapshot, names: Iterable[str]) -> list[str]:
    """Returns those of ``names`` that are Ready: on others no kubelet can say that a pod has stopped."""
    nodes = (snapshot.nodes.get(name) for name in names)
    return sorted(node.name for node in nodes if node and node.ready)


def leftovers(description: str, names: Iterable[str]) -> list[Leftover]:
    present = tuple(names)
    return [Leftover(description, present)] if present else []
