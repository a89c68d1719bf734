"""Conditions about a policy's nodes."""

from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_operator.cluster.objects import PolicyView, ShareNodeView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.nodes import Assignment
from gpushare_operator.decide.selection import matches
from gpushare_operator.decide.support import unserved
from gpushare_operator.status import conditions as reasons
from gpushare_operator.status.totals import why_not_ready
from gpushare_operator.status.verdict import Verdict, fails, holds
from gpushare_operator.status.wording import counted, explained, listed


def nodes_ready(snapshot: Snapshot, policy: PolicyView, assignment: Assignment) -> Verdict:
    if policy.deleting:
        return fails(reasons.NODES_READY, reasons.DELETING, "the policy lets its nodes go")
    late = {
        name: why
        for name in assignment.enabled
        if (why := why_not_ready(snapshot.nodes.get(name), snapshot.share_nodes.get(name)))
    }
    late.update({name: f"policy {other} is letting it go" for name, other in assignment.waiting.items()})
    remark = _idle_rules(snapshot, policy)
    if late:
        return fails(reasons.NODES_READY, reasons.NODES_NOT_READY, f"{explained(late)}{remark}")
    if not assignment.enabled:
        message = "no node is shared: change spec.nodes, or label nodes so that a rule selects them"
        return fails(reasons.NODES_READY, reasons.NO_NODES_SELECTED, f"{message}{remark}")
    ready = counted(len(assignment.enabled), "node")
    return holds(reasons.NODES_READY, reasons.ALL_NODES_READY, f"{ready} ready{remark}")


def _idle_rules(snapshot: Snapshot, policy: PolicyView) -> str:
    """Rules and names that select nothing are no error: the nodes may come later."""
    rules = policy.spec.nodes if policy.spec else []
    nodes = snapshot.nodes.values()
    idle = [f"nodes[{at}]" for at, rule in enumerate(rules) if not any(matches(rule, node) for node in nodes)]
    missing = {name for rule in rules for name in rule.names or () if name not in snapshot.nodes}
    remarks = [
        f"no node is selected by {', '.join(idle)}" if idle else "",
        f"there is no node named {listed(missing)}" if missing else "",
    ]
    return "".join(f"; {remark}" for remark in remarks if remark)


def conflicted(assignment: Assignment) -> Verdict:
    if not assignment.lost:
        return fails(reasons.CONFLICTED, reasons.NO_CONFLICT, "no node is claimed by an older policy")
    winners = listed(set(assignment.lost.values()))
    message = (
        f"{listed(assignment.lost)}: shared by the older policy {winners};"
        " select other nodes here, or leave these out there"
    )
    return holds(reasons.CONFLICTED, reasons.NODES_CLAIMED, message)


def unit_change_blocked(shares: list[ShareNodeView]) -> Verdict:
    blocked = _told(shares, UNIT_CHANGE_BLOCKED)
    kind = reasons.UNIT_CHANGE_BLOCKED
    if not blocked:
        return fails(kind, reasons.NOT_BLOCKED, "every node has the unit and mode of the policy")
    return holds(kind, reasons.PODS_HOLD_UNITS, explained(blocked))


def degraded(policy: PolicyView, shares: list[ShareNodeView], failures: list[str]) -> Verdict:
    """The first thing that is wrong, the gravest first."""
    found = [*_spec_problems(policy), *_api_problems(failures), *_card_problems(shares)]
    if not found:
        return fails(reasons.DEGRADED, reasons.AS_EXPECTED, "nothing is wrong")
    messages = "; ".join(message for _, message in found)
    return holds(reasons.DEGRADED, found[0][0], messages)


def _spec_problems(policy: PolicyView) -> list[tuple[str, str]]:
    if policy.spec is None:
        return [(reasons.INVALID_SPEC, f"{policy.error}; correct the spec")]
    return [(each.reason, each.message) for each in unserved(policy.spec)]


def _api_problems(failures: list[str]) -> list[tuple[str, str]]:
    if not failures:
        return []
    return [(reasons.API_ERRORS, f"the API server refused, trying again: {'; '.join(failures[:3])}")]


def _card_problems(shares: list[ShareNodeView]) -> list[tuple[str, str]]:
    too_fine = _told(shares, UNIT_TOO_FINE)
    unhealthy = {share.name: counted(share.unhealthy, "card") for share in shares if share.unhealthy}
    problems = [
        (reasons.UNIT_TOO_FINE, explained(too_fine)) if too_fine else None,
        (reasons.CARDS_UNHEALTHY, f"unhealthy: {explained(unhealthy)}") if unhealthy else None,
    ]
    return [problem for problem in problems if problem]


def _told(shares: list[ShareNodeView], kind: str) -> dict[str, str]:
    """Node name -> message, of the nodes for which the condition is true."""
    held = {share.name: share.conditions.get(kind) for share in shares}
    return {name: each.message for name, each in held.items() if each and each.status == "True"}
