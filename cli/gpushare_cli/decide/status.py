"""Whether all is well with gpushare in a cluster."""

from typing import ClassVar

from msgspec import Struct

from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.problems.facts import StatusFacts, UnreadPart
from gpushare_cli.decide.problems.installation import is_operator_away
from gpushare_cli.decide.problems.policies import READY
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.decide.problems.table import all_problems
from gpushare_cli.decide.version import ProgramVersion, program_versions
from gpushare_cli.report import CommandReport, ExitStatus
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.placement.quantity import read_amount


class PolicyState(Struct, frozen=True, kw_only=True, rename="camel"):
    """A policy as the operator reports it."""

    name: str
    ready: str
    """``True`` or ``False``; ``Unknown`` where no operator is at work, or none has seen the present spec."""
    reason: str = ""
    message: str = ""
    backend: str = ""
    engine: str = ""
    """Plugin or Extender; empty: none of ours, or none yet."""
    dialect: str = ""
    isolation: str = ""
    """What its rules ask for: Hook, Driver, or both; ``evicts`` where pods with more are evicted. Empty:
    nothing."""
    ready_nodes: int = 0
    enabled_nodes: int = 0
    healthy_cards: int = 0
    """Healthy, and not cordoned."""
    total_cards: int = 0
    allocated_units: int = 0
    total_units: int = 0
    unit: str = ""
    """What a unit is, such as ``1Gi``; several where its nodes have different modes."""
    units_summary: str = ""
    """Allocated/total of each kind of unit."""
    allocated_memory_bytes: int = 0
    used_memory_bytes: int = 0
    """As measured; 0 also where nothing is measured."""
    total_memory_bytes: int = 0
    creation_timestamp: str = ""


class StatusReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "StatusReport"
    is_well: bool
    """Whether nothing is wrong in all that could be read."""
    problems: tuple[StatusProblem, ...] = ()
    """Worst first."""
    policies: tuple[PolicyState, ...] = ()
    unread: tuple[UnreadPart, ...] = ()
    client: str = ""
    kubernetes: str = ""
    programs: tuple[ProgramVersion, ...] = ()

    @property
    def names(self) -> list[str]:
        return [f"gpusharepolicy.gpushare.io/{policy.name}" for policy in self.policies]

    @property
    def exit_status(self) -> ExitStatus:
        if self.wrong:
            return ExitStatus.NO
        return ExitStatus.CANNOT_LOOK if self.unread else ExitStatus.GOOD

    @property
    def wrong(self) -> list[StatusProblem]:
        return [problem for problem in self.problems if problem.severity is not Severity.NOTE]

    @property
    def notes(self) -> list[StatusProblem]:
        return [problem for problem in self.problems if problem.severity is Severity.NOTE]


def status_report(facts: StatusFacts) -> StatusReport:
    problems = tuple(all_problems(facts))
    is_wrong = any(problem.severity is not Severity.NOTE for problem in problems)
    return StatusReport(
        is_well=not is_wrong and not facts.unread,
        problems=problems,
        policies=tuple(_policy_state(policy, facts) for policy in facts.policies or ()),
        unread=tuple(facts.unread),
        client=facts.client_version,
        kubernetes=facts.kubernetes,
        programs=program_versions(facts),
    )


def _isolation(policy: ObservedPolicy) -> str:
    asked = [rule.isolation for rule in policy.spec.nodes or ()]
    kinds = dict.fromkeys(one.memory for one in asked if one.memory != MemoryIsolation.NONE)
    return ", ".join([*kinds, *(["evicts"] if any(one.evicts for one in asked) else [])])


def _policy_state(policy: ObservedPolicy, facts: StatusFacts) -> PolicyState:
    status, ready = policy.status, policy.condition(READY)
    is_current = policy.is_seen and not is_operator_away(facts)
    return PolicyState(
        name=policy.name,
        ready=ready.status if ready and is_current else UNKNOWN,
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
        backend=status.backend,
        engine=status.engine,
        dialect=policy.spec.dialect,
        isolation=_isolation(policy),
        ready_nodes=status.nodes.ready,
        enabled_nodes=status.nodes.enabled,
        healthy_cards=status.cards.healthy,
        total_cards=status.cards.total,
        allocated_units=status.units.allocated,
        total_units=status.units.total,
        unit=status.units.unit,
        units_summary=status.units.summary,
        allocated_memory_bytes=int(read_amount(status.memory.allocated)),
        used_memory_bytes=int(read_amount(status.memory.used)),
        total_memory_bytes=int(read_amount(status.memory.total)),
        creation_timestamp=policy.metadata.creation_timestamp,
    )
