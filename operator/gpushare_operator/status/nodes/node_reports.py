"""What a policy's status says of its nodes: a report for each node, and questions about all of them."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gpushare_core.api.conditions import FALSE, TRUE
from gpushare_core.api.names import ISOLATION_IN_FORCE, UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.cluster.nodes.node_index import Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import PolicyObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.node_assignment import (
    Claimants,
    NodeAssignment,
    assign_node,
    claimants_of,
)
from gpushare_operator.decide.policy_plan import NodePlanner
from gpushare_operator.status.nodes.node_audit import found_difference, why_not_audited
from gpushare_operator.status.nodes.node_readiness import why_not_ready
from gpushare_operator.status.nodes.other_plugins import offered_by_others
from gpushare_operator.status.totals import SHARING, amounts_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MatchedRule:
    """Counts the nodes that a rule matches, by its position in the policy's ``spec.nodes``."""

    position: int


@dataclass(frozen=True, slots=True)
class OwnRule:
    """Counts the nodes that no rule before the one at this position matches."""

    position: int


class ReportedCondition(NamedTuple):
    """What a condition of a GPUShareNode says."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What is special about a node that a policy asks for; empty texts if all is as it should be. Nodes with
    the same to report have equal reports."""

    assignment: NodeAssignment
    why_not_ready: str = ""
    hidden_labels: tuple[str, ...] = ()
    """Labels of the dialect, ``KEY=VALUE``, of which somebody else has set another value."""
    reported: tuple[tuple[str, ReportedCondition], ...] = ()
    """By type, the conditions that policies repeat, if they tell of a problem with what is asked for now."""
    unhealthy_cards: int = 0
    offered_by_others: frozenset[str] = frozenset()
    difference: str = ""
    """What differs in the node's records, by the plugin or the GPUShareNode itself."""
    not_audited: str = ""
    """Why nobody can tell whether the records differ."""


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """The nodes of one policy, as its status needs them."""

    claimants: Claimants
    states: Mapping[str, ObservedState]
    index: NodeIndex[Any]
    """Its groups have equal ``NodeReport``s."""
    defects: Mapping[str, str]
    """Node name -> why nothing is known of it, or nothing can be planned for it."""
    is_cut: bool = False
    """Whether more has to be written to the nodes than one round writes."""

    @property
    def number(self) -> int:
        """Returns how many nodes share their cards under the policy."""
        return self.index.sums.get(SHARING, 0)

    def by_node(self, what: Callable[[NodeReport], T | None]) -> dict[str, T]:
        """Returns node name -> ``what`` of its report, of those nodes where it is not empty.

        ``what`` is called once for all nodes with equal reports: while plugins start, those are thousands,
        and a status asks a dozen such questions.
        """
        found: dict[str, T] = {}
        for report, names in self.index.groups.items():
            if answer := what(report):
                found.update(dict.fromkeys(names, answer))
        return found

    def reported(self, type_: str) -> dict[str, ReportedCondition]:
        """Returns node name -> the condition, of the nodes where it tells of a problem."""
        return self.by_node(lambda report: dict(report.reported).get(type_))

    def is_sharing(self, name: str) -> bool:
        state = self.states.get(name)
        return state is not None and assign_node(state, self.claimants).is_sharing


def policy_nodes(snapshot: ClusterSnapshot, policy: PolicyObject, *, is_cut: bool = False) -> PolicyNodes:
    """The result is valid until the next snapshot is asked about the same policy."""
    claimants = claimants_of(snapshot, policy)
    planned = snapshot.index(NodePlanner(claimants), subject=policy.name)
    index = snapshot.index(NodeReporter(claimants, NodePlanner(claimants)), subject=policy.name)
    return PolicyNodes(claimants, snapshot.states, index, {**planned.defects, **index.defects}, is_cut)


REPEATED = {UNIT_CHANGE_BLOCKED: TRUE, UNIT_TOO_FINE: TRUE, ISOLATION_IN_FORCE: FALSE}
"""Type of a condition of GPUShareNodes that a policy repeats -> the status that tells of a problem."""


@dataclass(frozen=True, slots=True)
class NodeReporter:
    """Reports on one node for a policy's status. Reporters are equal if their policies ask for the same."""

    claimants: Claimants
    planner: NodePlanner = field(compare=False)
    """Follows from ``claimants``."""

    def __call__(self, state: ObservedState) -> Entry[Any]:
        assignment = assign_node(state, self.claimants)
        positions = [*self._matched(state)]
        matched: dict[Hashable, int] = {MatchedRule(position): 1 for position in positions}
        matched |= {OwnRule(position): 1 for position in positions[:1]}
        if not assignment.is_sharing:
            report = NodeReport(assignment=assignment)
            return _entry(report, matched)
        report = self._report(state, assignment)
        amounts = amounts_of(state.share, is_ready=not report.why_not_ready)
        return _entry(report, {**matched, **amounts})

    def _matched(self, state: ObservedState) -> Iterator[int]:
        spec = self.claimants.policy.spec
        for position, rule in enumerate(spec.nodes if spec else ()):
            if state.node and rule.matches(state.node.name, state.node.labels):
                yield position

    def _report(self, state: ObservedState, assignment: NodeAssignment) -> NodeReport:
        # Until the GPUShareNode is written, its plugin's report is about something else.
        is_current = self.planner.is_current(state, assignment)
        share, why_outdated = state.share, "" if is_current else "its GPUShareNode is about to change"
        return NodeReport(
            assignment=assignment,
            why_not_ready=why_not_ready(state) or why_outdated,
            hidden_labels=tuple(self._hidden_labels(state)),
            reported=tuple(_reported(share)) if share and not why_outdated else (),
            unhealthy_cards=share.unhealthy_cards if share else 0,
            offered_by_others=offered_by_others(state),
            difference=found_difference(share),
            not_audited=why_not_audited(state),
        )

    def _hidden_labels(self, state: ObservedState) -> Iterator[str]:
        spec, labels = self.claimants.policy.spec, state.node.labels if state.node else {}
        for key, value in (DIALECTS[spec.dialect].node_labels if spec else {}).items():
            if labels.get(key, value) != value:
                yield f"{key}={value}"


def _entry(report: NodeReport, amounts: Mapping[Hashable, int]) -> Entry[Any]:
    is_special = report != NodeReport(assignment=NodeAssignment(rule=report.assignment.rule))
    return Entry(common=report if is_special else None, amounts=amounts)


def _reported(share: ShareNodeObject) -> Iterator[tuple[str, ReportedCondition]]:
    """Yields no conditions about an earlier spec: they may be about another unit."""
    for type_, status in REPEATED.items() if share.observed_generation == share.generation else ():
        condition = share.conditions.get(type_)
        if condition and condition.status == status:
            yield type_, ReportedCondition(condition.reason, condition.message or condition.reason)
