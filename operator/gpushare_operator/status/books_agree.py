"""The condition BooksAgree: whether all that is written down of a policy's cards says the same.

Three look at it. Each plugin audits its own node, by the kubelet's books and the hardware (``LedgerInSync``).
The operator audits each GPUShareNode by itself, once for each version of it. The extender audits its ledger
against annotations and GPUShareNodes: it notices a plugin that stands still. It is not heard of nodes that
are not Ready or whose kubelet is silent: it sees pods there that were bound, and that nobody admits. All of
them know of what has lasted, or is in one object; so this condition needs no patience of its own.

It is part of neither Ready nor Degraded. Ready says that what the policy asks for is in force: pods are
placed and run, and whoever waits for it must not be held up because the books of one card differ, nor does a
rollout go better by waiting. Degraded says what the operator cannot do, or what of the policy cannot be had;
a difference is neither, and would be told twice there. Who looks at ``kubectl get gpushare`` alone sees it in
the column BOOKS of policy and node.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from gpushare_core.api.conditions import (
    FALSE,
    TRUE,
    Condition,
    ConditionState,
    condition_false,
    condition_true,
    condition_unknown,
)
from gpushare_core.api.names import BOOKS_LEASE
from gpushare_core.audit.extender_report import ExtenderReport
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import counted, explained
from gpushare_operator.status.nodes.node_audit import why_unseen
from gpushare_operator.status.nodes.node_reports import PolicyNodes


def books_agree(snapshot: ClusterSnapshot, nodes: PolicyNodes, now: datetime) -> ConditionState:
    """Returns the condition as of ``now``: reports of extenders that are gone are believed no longer."""
    type_ = conditions.BOOKS_AGREE
    if differing := _differing(snapshot, nodes, now):
        return condition_false(type_, conditions.BOOKS_DIFFER, explained(differing))
    unseen = nodes.said(lambda report: report.books_unseen)
    if unseen:
        message = f"what the kubelet has given out is not seen: {explained(unseen)}"
        return condition_unknown(type_, conditions.BOOKS_NOT_SEEN, message)
    if not nodes.number:
        return condition_unknown(type_, conditions.BOOKS_NOT_SEEN, "no node is shared: there are no books")
    message = f"all books of {counted(nodes.number, 'node')} say the same"
    return condition_true(type_, conditions.BOOKS_SAY_THE_SAME, message)


def differed_when_seen(condition: Condition | None) -> bool:
    """Whether books differed when ``condition`` was written, or when they were seen last before."""
    return condition is not None and (
        condition.status == FALSE or condition.reason == conditions.BOOKS_NOT_SEEN_SINCE
    )


def since_seen(state: ConditionState, before: Iterable[Condition]) -> ConditionState:
    """Returns ``state``, which says so where books differed when they were seen last, by the conditions
    ``before``: that a difference is over is told however long nobody could see it."""
    old = next((each for each in before if each.type == state.type), None)
    if state.status in (TRUE, FALSE) or not differed_when_seen(old):
        return state
    return condition_unknown(state.type, conditions.BOOKS_NOT_SEEN_SINCE, state.message)


def seconds_until_reports_end(snapshot: ClusterSnapshot, now: datetime) -> float | None:
    """Returns the seconds until a report is believed no longer, unless it is renewed; None: there is none."""
    return min((report.seconds_left(now) for report in _reports(snapshot, now)), default=None)


def _differing(snapshot: ClusterSnapshot, nodes: PolicyNodes, now: datetime) -> dict[str, str]:
    """Returns node -> what differs, by the first that says so: who sees most comes first."""
    found = nodes.said(lambda report: report.differing)
    said = _said_by_extenders(snapshot, now)
    heard = {name: text for name, text in said.items() if nodes.is_sharing(name)}
    believed = {name: text for name, text in heard.items() if not why_unseen(nodes.states[name])}
    return {**believed, **found}


def _said_by_extenders(snapshot: ClusterSnapshot, now: datetime) -> Mapping[str, str]:
    """Of two extenders that name the same node the one counts whose name comes first: no text alternates."""
    said: dict[str, str] = {}
    for report in sorted(_reports(snapshot, now), key=lambda each: each.by):
        for node, sentence in report.nodes.items():
            told = sentence or "its ledger and the other books differ: see its /gpushare/inspect"
            said.setdefault(node, f"the extender of {_host(report)} sees: {told}")
    return said


def _host(report: ExtenderReport) -> str:
    return report.by.rpartition("_")[0] or report.by


def _reports(snapshot: ClusterSnapshot, now: datetime) -> Iterator[ExtenderReport]:
    lease = snapshot.calls.get(BOOKS_LEASE)
    return (report for report in (lease.reports if lease else ()) if report.seconds_left(now) > 0)
