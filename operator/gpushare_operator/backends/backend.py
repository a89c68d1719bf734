"""The interface of a scheduler backend, all that ``decide`` and ``status`` know of one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.enums import Backend, Engine
from gpushare_core.api.served import Problem
from gpushare_operator.actions import Action, Plan
from gpushare_operator.backends.teardown_step import EVERY_POLICY, Situation, TeardownStep, due_steps
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.engine_choice import EngineChoice
from gpushare_operator.policies.scheduler_settings import scheduler_settings


def extender_alone(situation: Situation) -> EngineChoice:
    """Returns the choice of a backend that runs kube-schedulers of others, with our extender."""
    if scheduler_settings(situation.snapshot).engine is Engine.EXTENDER:
        return EngineChoice()
    served = f"only backends {Backend.DEDICATED} and {Backend.KUBE_SCHEDULER} serve {Engine.PLUGIN}"
    return EngineChoice(fallback=served)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerBackend:
    """One way to have pods placed by cards."""

    name: Backend
    connect: Callable[[Situation], Plan]
    """Returns what is due now to connect it, while a policy needs it."""
    condition: Callable[[Situation], ConditionState]
    """Returns how far connecting it is."""
    disconnecting: Callable[[Situation], Problem]
    """Returns how far taking it back is, while something of it is left."""
    disconnected: Callable[[Situation], Problem]
    """Returns what is said when nothing of it is left."""
    needed_by_others: str
    """What stays while a policy goes and another one needs this backend."""
    teardown_steps: tuple[TeardownStep, ...]
    is_in_force: Callable[[ClusterSnapshot], bool]
    """Whether it is the one that was connected, as far as the cluster itself shows."""
    engine: Callable[[Situation], EngineChoice | None] = extender_alone
    """Returns which engine places pods once it is connected; None where no engine of ours does."""
    may_be_connected: Callable[[ClusterSnapshot], bool] = lambda _: True
    """Whether nothing is in the way that only people can remove: until then the former backend stays."""
    is_connecting: Callable[[Situation], bool] = lambda _: False
    """Whether schedulers place pods by the sums of nodes still, and will ask the extender soon."""
    upkeep: Callable[[ClusterSnapshot], Iterable[Action]] = lambda _: ()
    """Returns what is due now whichever backend is needed."""

    def disconnect(self, situation: Situation) -> Plan:
        """Returns what is due now to take it back while policies stay in force."""
        return due_steps(self.teardown_steps, situation)

    def settled(self, snapshot: ClusterSnapshot) -> bool:
        return not any(step.waiting_for(snapshot, EVERY_POLICY) for step in self.teardown_steps)

    def farewell(self, situation: Situation, needed: Backend | None) -> Problem:
        """Returns what is said while a policy or this backend goes; ``needed`` is the backend that stays."""
        if needed is self.name:
            return Problem(conditions.DELETING, f"{self.needed_by_others}: other policies need it")
        is_settled = self.settled(situation.snapshot)
        return self.disconnected(situation) if is_settled else self.disconnecting(situation)
