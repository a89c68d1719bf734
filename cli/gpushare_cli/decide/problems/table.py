"""All families of problems, and what they add up to."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from gpushare_cli.decide.problems.cards import card_problems
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.installation import installation_problems
from gpushare_cli.decide.problems.isolation import isolation_problems
from gpushare_cli.decide.problems.nodes import NOT_IN_SYNC, node_problems
from gpushare_cli.decide.problems.pods import pod_problems
from gpushare_cli.decide.problems.policies import policy_problems
from gpushare_cli.decide.problems.problem import StatusProblem, grouped
from gpushare_cli.decide.problems.skew import skew_problems

FAMILIES: tuple[Callable[[StatusFacts], Iterable[StatusProblem]], ...] = (
    installation_problems,
    policy_problems,
    node_problems,
    card_problems,
    pod_problems,
    isolation_problems,
    skew_problems,
)
REPEATED: Mapping[str, Collection[str]] = {
    "PodsHoldUnits": ("PodsHoldUnits",),
    "BooksDiffer": NOT_IN_SYNC,
    "UnitTooFine": ("TooManyUnits", "UnitTooFine"),
    "CardsUnhealthy": ("CardSick",),
    "IsolationNotInForce": ("IsolationNotInForce",),
}
"""Reason of a policy -> reasons of its nodes and cards that say the same, one by one and with more detail."""


def all_problems(facts: StatusFacts) -> list[StatusProblem]:
    """Returns them worst first, each thing once."""
    found = [problem for family in FAMILIES for problem in family(facts)]
    return grouped(problem for problem in found if not _is_said(problem, found, facts))


def _is_said(problem: StatusProblem, found: Sequence[StatusProblem], facts: StatusFacts) -> bool:
    """Whether other problems say the same, and more."""
    if problem.kind == "pod":
        return problem.reason == "ExtenderNotReady" and any(
            other.kind == "policy" and other.reason == problem.reason for other in found
        )
    if problem.kind != "policy":
        return False
    parts = [other for other in found if other.kind in ("node", "card") and other.policy == problem.policy]
    if problem.reason == "NodesNotReady":
        nodes = {other.names for other in parts if other.kind == "node"}
        return 0 < _late(facts, problem.policy) <= len(nodes)
    return any(other.reason in REPEATED.get(problem.reason, ()) for other in parts)


def _late(facts: StatusFacts, policy: str) -> int:
    """Returns how many nodes of a policy are not ready, as it says itself."""
    nodes = next(found.status.nodes for found in facts.policies or () if found.name == policy)
    return nodes.enabled - nodes.ready
