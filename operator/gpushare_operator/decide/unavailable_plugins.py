"""Plugins that no longer renew their Leases, and what that means for their GPUShareNodes."""

from collections.abc import Iterator
from datetime import datetime

from gpushare_core.api.conditions import condition_unknown
from gpushare_core.api.names import (
    CARDS_HEALTHY,
    ISOLATION_IN_FORCE,
    ISOLATION_READY,
    LEDGER_IN_SYNC,
    REGISTERED,
)
from gpushare_core.api.timestamps import rfc3339
from gpushare_operator.actions import DoubtShareNode
from gpushare_operator.cluster.nodes.observed_states import ObservedState

DOUBTED = (REGISTERED, CARDS_HEALTHY, LEDGER_IN_SYNC, ISOLATION_READY, ISOLATION_IN_FORCE)
"""Types of conditions that are Unknown while the plugin is unavailable, if they were True."""
STOPPING = "Stopping"
"""Reason of a plugin's last report, when it expects a successor."""
PLUGIN_SILENT = "PluginSilent"
NODE_NOT_READY = "NodeNotReady"
"""Reasons: part of the API."""


def why_unavailable(state: ObservedState) -> str:
    """Returns why nothing is known of a node, for people; empty while its plugin renews its Lease."""
    since = _unavailable_since(state)
    if since is None:
        return ""
    heard = f"its plugin last reported at {rfc3339(since)}"
    if _is_node_away(state):
        return f"the node itself is not Ready, and {heard}"
    if state.plugin is None:
        restarts = "after five minutes the kubelet restarts no container with units until a plugin is back"
        return f"{heard}, and has no pod there now; {restarts}"
    return f"{heard}: it hangs, or does not reach the API server (pod {state.plugin.name})"


def doubt_share_node(state: ObservedState) -> Iterator[DoubtShareNode]:
    """Yields the conditions that are still True, as Unknown. A plugin that is back writes them again. False
    stays, but for that of a plugin that no other has followed."""
    share, why, since = state.share, why_unavailable(state), _unavailable_since(state)
    if share is None or share.deleting or since is None:
        return
    reason = NODE_NOT_READY if _is_node_away(state) else PLUGIN_SILENT
    doubted = tuple(
        condition_unknown(type_, reason, why)
        for type_ in DOUBTED
        if (condition := share.conditions.get(type_)) and (condition.is_true or condition.reason == STOPPING)
    )
    if doubted:
        yield DoubtShareNode(share.name, share.uid, since, doubted)


def _unavailable_since(state: ObservedState) -> datetime | None:
    """Returns None also if the plugin has written its GPUShareNode since: it is back, and its Lease is read
    later. Both times are by the node's clock."""
    share, since = state.share, state.unavailable_since
    has_reported = since and share and share.registered_since and share.registered_since > since
    return None if has_reported else since


def _is_node_away(state: ObservedState) -> bool:
    return state.node is None or not state.node.ready
