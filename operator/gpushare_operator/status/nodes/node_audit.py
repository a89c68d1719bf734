"""What is known of the books of one node: whether they differ, and why nobody sees it."""

from gpushare_core.api.conditions import FALSE, TRUE
from gpushare_core.api.names import LEDGER_IN_SYNC
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import ShareNodeObject
from gpushare_operator.decide.unavailable_plugins import why_silent


def said_of_books(share: ShareNodeObject | None) -> str:
    """Returns what differs, by the plugin, which sees most, or by the object itself; empty where nothing
    does."""
    return _said_by_plugin(share) or _seen_in(share)


def why_books_unseen(state: ObservedState) -> str:
    """Returns why nobody can tell whether books differ; empty where the plugin does."""
    return why_unseen(state) or _why_old(state)


def why_unseen(state: ObservedState) -> str:
    """Returns why the plugin of a node cannot tell, or empty text. One that stopped told before it did."""
    if state.node is None or not state.node.ready:
        return "the node itself is not Ready"
    if why := why_silent(state):
        return why
    condition = state.share.conditions.get(LEDGER_IN_SYNC) if state.share else None
    if condition is None:
        return "its plugin has not answered yet"
    return "" if condition.status == TRUE else f"{condition.reason}: {condition.message}"


def _why_old(state: ObservedState) -> str:
    """Returns why nobody looks any more at what the plugin of a node said: a process that was killed could
    not take it back, and one that hangs does not."""
    pod = state.plugin
    if pod is not None and pod.ready:
        return ""
    why = "it has no pod" if pod is None else pod.waiting or "its pod is not Ready"
    return f"its plugin does not run, and what its GPUShareNode says is old: {why}"


def _said_by_plugin(share: ShareNodeObject | None) -> str:
    condition = share.conditions.get(LEDGER_IN_SYNC) if share else None
    return f"{condition.reason}: {condition.message}" if condition and condition.status == FALSE else ""


def _seen_in(share: ShareNodeObject | None) -> str:
    if share is None or not share.differences:
        return ""
    first, *more = share.differences
    return first.sentence + (f" (and {len(more)} more in its GPUShareNode)" if more else "")
