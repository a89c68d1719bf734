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
from gpushare_core.api.names import BOOKS_LEASE, LEDGER_IN_SYNC
from gpushare_core.audit.extender_report import ExtenderReport
from gpushare_operator.cluster.objects import ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.node_assignment import Assignment
from gpushare_operator.status import conditions
from gpushare_operator.status.wording import counted, explained


def books_agree(snapshot: Snapshot, assignment: Assignment, now: datetime) -> ConditionState:
    """Returns the condition as of ``now``: reports of extenders that are gone are believed no longer."""
    type_, nodes = conditions.BOOKS_AGREE, assignment.sharing
    if differing := _differing(snapshot, assignment, now):
        return condition_false(type_, conditions.BOOKS_DIFFER, explained(differing))
    unseen = {name: why for name in nodes if (why := _why_unseen(snapshot, name) or _why_old(snapshot, name))}
    if unseen:
        message = f"what the kubelet has given out is not seen: {explained(unseen)}"
        return condition_unknown(type_, conditions.BOOKS_NOT_SEEN, message)
    if not nodes:
        return condition_unknown(type_, conditions.BOOKS_NOT_SEEN, "no node is shared: there are no books")
    return condition_true(type_, conditions.BOOKS_SAY_THE_SAME, f"those of {counted(len(nodes), 'node')}")


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


def seconds_until_reports_end(snapshot: Snapshot, now: datetime) -> float | None:
    """Returns the seconds until a report is believed no longer, unless it is renewed; None: there is none."""
    return min((each.seconds_left(now) for each in _reports(snapshot, now)), default=None)


def _differing(snapshot: Snapshot, assignment: Assignment, now: datetime) -> dict[str, str]:
    """Returns node -> what differs, by the first that says so: who sees most comes first."""
    said = _said_by_extenders(snapshot, now)
    found: dict[str, str] = {}
    for name in assignment.sharing:
        share = snapshot.share_nodes.get(name)
        heard = "" if _why_unseen(snapshot, name) else said.get(name, "")
        texts = [_said_by_plugin(share), _seen_in(share), heard]
        if text := next(filter(None, texts), ""):
            found[name] = text
    return found


def _said_by_plugin(share: ShareNodeObject | None) -> str:
    condition = share.conditions.get(LEDGER_IN_SYNC) if share else None
    return f"{condition.reason}: {condition.message}" if condition and condition.status == FALSE else ""


def _seen_in(share: ShareNodeObject | None) -> str:
    if share is None or not share.differences:
        return ""
    first, *more = share.differences
    return first.sentence + (f" (and {len(more)} more in its GPUShareNode)" if more else "")


def _said_by_extenders(snapshot: Snapshot, now: datetime) -> Mapping[str, str]:
    """Of two extenders that name the same node the one counts whose name comes first: no text alternates."""
    said: dict[str, str] = {}
    for report in sorted(_reports(snapshot, now), key=lambda each: each.by):
        for node, sentence in report.nodes.items():
            told = sentence or "its ledger and the other books differ: see its /gpushare/inspect"
            said.setdefault(node, f"the extender of {_host(report)} sees: {told}")
    return said


def _host(report: ExtenderReport) -> str:
    return report.by.rpartition("_")[0] or report.by


def _reports(snapshot: Snapshot, now: datetime) -> Iterator[ExtenderReport]:
    lease = snapshot.calls.get(BOOKS_LEASE)
    return (each for each in (lease.reports if lease else ()) if each.seconds_left(now) > 0)


def _why_unseen(snapshot: Snapshot, name: str) -> str:
    """Returns why the plugin of a node cannot tell, or empty text. One that stopped told before it did."""
    node, share = snapshot.nodes.get(name), snapshot.share_nodes.get(name)
    if node is None or not node.ready:
        return "the node itself is not Ready"
    condition = share.conditions.get(LEDGER_IN_SYNC) if share else None
    if condition is None:
        return "its plugin has not answered yet"
    return "" if condition.status == TRUE else f"{condition.reason}: {condition.message}"


def _why_old(snapshot: Snapshot, name: str) -> str:
    """Returns why nobody looks any more at what the plugin of a node said: a process that was killed could
    not take it back, and one that hangs does not."""
    pod = snapshot.plugin_pods.get(name)
    if pod is not None and pod.ready:
        return ""
    why = "it has no pod" if pod is None else pod.waiting or "its pod is not Ready"
    return f"its plugin does not run, and what its GPUShareNode says is old: {why}"
