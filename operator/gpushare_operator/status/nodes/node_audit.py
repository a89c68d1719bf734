"""Whether the records of one node differ, and why nobody can tell."""

from gpushare_core.api.conditions import FALSE, TRUE
from gpushare_core.api.names import LEDGER_IN_SYNC
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import ShareNodeObject
from gpushare_operator.decide.unavailable_plugins import why_unavailable


def found_difference(share: ShareNodeObject | None) -> str:
    """Returns the difference that the plugin found, which sees most, else one within the object; may be
    empty."""
    if share is None:
        return ""
    said = share.conditions.get(LEDGER_IN_SYNC)
    if said and said.status == FALSE:
        return f"{said.reason}: {said.message}"
    if not share.differences:
        return ""
    first, *more = share.differences
    return first.sentence + (f" (and {len(more)} more in its GPUShareNode)" if more else "")


def why_not_audited(state: ObservedState) -> str:
    """Returns why nobody can tell whether the records differ; empty if the plugin does."""
    return why_plugin_cannot_audit(state) or _why_old(state)


def why_plugin_cannot_audit(state: ObservedState) -> str:
    """Returns why the plugin of a node cannot tell; may be empty. A plugin that stops reports before it
    does."""
    if state.node is None or not state.node.ready:
        return "the node itself is not Ready"
    if why := why_unavailable(state):
        return why
    condition = state.share.conditions.get(LEDGER_IN_SYNC) if state.share else None
    if condition is None:
        return "its plugin has not answered yet"
    return "" if condition.status == TRUE else f"{condition.reason}: {condition.message}"


def _why_old(state: ObservedState) -> str:
    """Returns why the plugin's last report is old, if no plugin runs: a process that is killed cannot
    withdraw its report."""
    pod = state.plugin
    if pod is not None and pod.ready:
        return ""
    why = "it has no pod" if pod is None else pod.waiting or "its pod is not Ready"
    return f"its plugin does not run, and its GPUShareNode is out of date: {why}"
