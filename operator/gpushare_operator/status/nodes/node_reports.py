"""What a policy's status says of its nodes: looked at node by node, told of all of them together."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.cluster.nodes.node_index import Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import PolicyObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.node_assignment import (
    Asked,
    NodeAssignment,
    asked_of,
    assign_node,
    matches,
)
from gpushare_operator.decide.policy_plan import NodePlanner
from gpushare_operator.status.nodes.node_audit import said_of_books, why_books_unseen
from gpushare_operator.status.nodes.node_readiness import why_not_ready
from gpushare_operator.status.nodes.other_plugins import offered_by_others
from gpushare_operator.status.totals import READY, SHARING, amounts_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MatchedRule:
    """Counts the nodes that a rule matches, by its position in the policy's ``spec.nodes``."""

    position: int


@dataclass(frozen=True, slots=True)
class OwnRule:
    """Counts the nodes that no rule before the one at this position matches."""

    position: int


class Told(NamedTuple):
    """What a condition of a GPUShareNode says."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What is special of a node that a policy asks for; empty texts where all is as it should be. Nodes of
    which the same is to be said have equal ones."""

    assignment: NodeAssignment
    why_not_ready: str = ""
    hidden_labels: tuple[str, ...] = ()
    """Labels of the dialect, ``KEY=VALUE``, of which somebody else has set another value."""
    told: tuple[tuple[str, Told], ...] = ()
    """By type, the conditions that policies repeat, of those that are true, and of what is asked now."""
    unhealthy_cards: int = 0
    offered_by_others: frozenset[str] = frozenset()
    differing: str = ""
    """What the plugin, or the GPUShareNode by itself, says of books that differ."""
    books_unseen: str = ""

    @property
    def is_special(self) -> bool:
        return self != NodeReport(assignment=NodeAssignment(rule=self.assignment.rule))


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """The nodes of one policy, as far as its status speaks of them."""

    asked: Asked
    states: Mapping[str, ObservedState]
    index: NodeIndex[Any]
    """Its groups are those of equal ``NodeReport``s."""
    defects: Mapping[str, str]
    """Node name -> why nothing is known of it, or nothing can be planned."""
    is_cut: bool = False
    """Whether more is to be written to them than one round writes."""

    @property
    def number(self) -> int:
        """Returns how many nodes share their cards under the policy."""
        return self.index.sums.get(SHARING, 0)

    @property
    def ready(self) -> int:
        return self.index.sums.get(READY, 0)

    def said(self, what: Callable[[NodeReport], T | None]) -> dict[str, T]:
        """Returns node name -> ``what`` of its report, of those nodes where it is not empty.

        It is asked once for all nodes of which the same is to be said: while plugins start, those are
        thousands, and a status asks a dozen such questions.
        """
        said: dict[str, T] = {}
        for report, names in self.index.groups.items():
            if answer := what(report):
                said.update(dict.fromkeys(names, answer))
        return said

    @property
    def lost(self) -> Mapping[str, str]:
        """Node name -> the older policy that has it."""
        return self.said(lambda report: report.assignment.lost_to)

    @property
    def kept(self) -> list[str]:
        return list(self.said(lambda report: report.assignment.is_kept))

    def told(self, type_: str) -> dict[str, Told]:
        """Returns node name -> what the condition says, of the nodes for which it is true."""
        return self.said(lambda report: dict(report.told).get(type_))

    def is_sharing(self, name: str) -> bool:
        state = self.states.get(name)
        return state is not None and assign_node(state, self.asked).is_sharing


def policy_nodes(snapshot: ClusterSnapshot, policy: PolicyObject, *, is_cut: bool = False) -> PolicyNodes:
    """Returns what is right until the next snapshot is asked about the same policy."""
    asked = asked_of(snapshot, policy)
    planned = snapshot.index(NodePlanner(asked), subject=policy.name)
    index = snapshot.index(NodeReporter(asked, NodePlanner(asked)), subject=policy.name)
    return PolicyNodes(asked, snapshot.states, index, {**planned.defects, **index.defects}, is_cut)


REPEATED = (UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE)
"""Types of conditions of GPUShareNodes."""


@dataclass(frozen=True, slots=True)
class NodeReporter:
    """Looks at one node for a policy's status. Looks are equal where the same is asked for."""

    asked: Asked
    planner: NodePlanner = field(compare=False)
    """For the same."""

    def __call__(self, state: ObservedState) -> Entry[Any]:
        assignment = assign_node(state, self.asked)
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
        """Yields the positions of the rules that match a node."""
        spec = self.asked.policy.spec
        for position, rule in enumerate(spec.nodes if spec else ()):
            if state.node and matches(rule, state.node):
                yield position

    def _report(self, state: ObservedState, assignment: NodeAssignment) -> NodeReport:
        share, why_not_told = state.share, self._why_not_told(state, assignment)
        return NodeReport(
            assignment=assignment,
            why_not_ready=why_not_ready(state) or why_not_told,
            hidden_labels=tuple(self._hidden_labels(state)),
            told=tuple(_told(share)) if share and not why_not_told else (),
            unhealthy_cards=share.unhealthy_cards if share else 0,
            offered_by_others=offered_by_others(state),
            differing=said_of_books(share),
            books_unseen=why_books_unseen(state),
        )

    def _why_not_told(self, state: ObservedState, assignment: NodeAssignment) -> str:
        """What its plugin answered is an answer to something else as long as that is not written."""
        return "" if self.planner.is_told(state, assignment) else "its GPUShareNode is to be changed"

    def _hidden_labels(self, state: ObservedState) -> Iterator[str]:
        spec, labels = self.asked.policy.spec, state.node.labels if state.node else {}
        for key, value in (DIALECTS[spec.dialect].node_labels if spec else {}).items():
            if labels.get(key, value) != value:
                yield f"{key}={value}"


def _entry(report: NodeReport, amounts: Mapping[Hashable, int]) -> Entry[Any]:
    return Entry(common=report if report.is_special else None, amounts=amounts)


def _told(share: ShareNodeObject) -> Iterator[tuple[str, Told]]:
    """Yields nothing of what was said of an earlier spec: it may be another unit that was refused."""
    for type_ in REPEATED if share.observed_generation == share.generation else ():
        condition = share.conditions.get(type_)
        if condition and condition.status == "True":
            yield type_, Told(condition.reason, condition.message or condition.reason)
