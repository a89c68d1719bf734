"""The condition BooksAgree: whether all records of a policy's cards agree.

Three programs compare them:

1. Each plugin audits its own node against the kubelet's records and the hardware (``LedgerInSync``).
2. The operator audits each version of each GPUShareNode by itself.
3. With engine Extender, the extender audits its ledger against annotations and GPUShareNodes, and so notices
   a plugin that hangs. Its reports do not count for nodes that are not Ready or whose plugin is unavailable:
   pods are bound there that nobody admits. With engine Plugin there is no such ledger: what is free follows
   from kube-scheduler's own view.

All of them report only differences that have lasted or lie within one object, so this condition does not
wait.

It is part of neither Ready nor Degraded. Ready says that what the policy asks for is in force: whoever waits
for it, or for a rollout, gains nothing by waiting for the records of one card. Degraded says what the
operator cannot do and what of the policy cannot be had; a difference is neither. ``kubectl get gpushare``
shows it in the column BOOKS of policy and node.
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
from gpushare_operator.status.nodes.node_audit import why_plugin_cannot_audit
from gpushare_operator.status.nodes.node_reports import PolicyNodes


def books_agree(snapshot: ClusterSnapshot, nodes: PolicyNodes, now: datetime) -> ConditionState:
    """Returns the condition as of ``now``: reports of extenders that are gone expire."""
    type_ = conditions.BOOKS_AGREE
    if differences := _differences(snapshot, nodes, now):
        return condition_false(type_, conditions.BOOKS_DIFFER, explained(differences))
    unseen = nodes.by_node(lambda report: report.not_audited)
    if unseen:
        message = f"it is unknown what the kubelet has given out: {explained(unseen)}"
        return condition_unknown(type_, conditions.BOOKS_NOT_SEEN, message)
    if not nodes.number:
        return condition_unknown(
            type_, conditions.BOOKS_NOT_SEEN, "no node is shared, so there are no records"
        )
    message = f"all records of {counted(nodes.number, 'node')} agree"
    return condition_true(type_, conditions.BOOKS_SAY_THE_SAME, message)


def differed_when_seen(condition: Condition | None) -> bool:
    """Returns whether the last audit up to ``condition`` found a difference."""
    if condition is None:
        return False
    return condition.status == FALSE or condition.reason == conditions.BOOKS_NOT_SEEN_SINCE


def since_seen(state: ConditionState, before: Iterable[Condition]) -> ConditionState:
    """Returns ``state``; if it is Unknown and the last audit before found a difference, with a reason that
    says so: an Event then reports the end of the difference, however long nobody could see it."""
    old = next((condition for condition in before if condition.type == state.type), None)
    if state.status in (TRUE, FALSE) or not differed_when_seen(old):
        return state
    return condition_unknown(state.type, conditions.BOOKS_NOT_SEEN_SINCE, state.message)


def seconds_until_reports_end(snapshot: ClusterSnapshot, now: datetime) -> float | None:
    """Returns the seconds until the first report expires unless it is renewed; None without a report."""
    return min((report.seconds_left(now) for report in _reports(snapshot, now)), default=None)


def _differences(snapshot: ClusterSnapshot, nodes: PolicyNodes, now: datetime) -> dict[str, str]:
    """Returns node -> its difference: that of the plugin or the operator, else that of an extender."""
    by_extenders = {
        name: text
        for name, text in _found_by_extenders(snapshot, now).items()
        if nodes.is_sharing(name) and not why_plugin_cannot_audit(nodes.states[name])
    }
    return {**by_extenders, **nodes.by_node(lambda report: report.difference)}


def _found_by_extenders(snapshot: ClusterSnapshot, now: datetime) -> Mapping[str, str]:
    """If several extenders report a node, the first by name counts, so that the text does not alternate."""
    found: dict[str, str] = {}
    for report in sorted(_reports(snapshot, now), key=lambda report: report.by):
        host = report.by.rpartition("_")[0] or report.by
        for node, sentence in report.nodes.items():
            difference = sentence or "its ledger and the other records differ: see its /gpushare/inspect"
            found.setdefault(node, f"the extender of {host} sees: {difference}")
    return found


def _reports(snapshot: ClusterSnapshot, now: datetime) -> Iterator[ExtenderReport]:
    lease = snapshot.calls.get(BOOKS_LEASE)
    return (report for report in (lease.reports if lease else ()) if report.seconds_left(now) > 0)
