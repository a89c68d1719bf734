"""What becomes of a GPUShareNode whose plugin is not heard of any more: what it said is not true any more."""

from collections.abc import Iterator
from datetime import datetime

from gpushare_core.api.conditions import condition_unknown
from gpushare_core.api.names import CARDS_HEALTHY, LEDGER_IN_SYNC, REGISTERED
from gpushare_core.api.timestamps import rfc3339
from gpushare_operator.actions import DoubtShareNode
from gpushare_operator.cluster.nodes.observed_states import ObservedState

DOUBTED = (REGISTERED, CARDS_HEALTHY, LEDGER_IN_SYNC)
"""Types of conditions that say that all is well, as of when the plugin wrote them."""
PLUGIN_SILENT = "PluginSilent"
NODE_NOT_READY = "NodeNotReady"
"""Reasons: part of the API."""


def why_silent(state: ObservedState) -> str:
    """Returns why nothing is known of a node, for people; empty where its plugin is heard of."""
    since = _silent_since(state)
    if since is None:
        return ""
    heard = f"its plugin was heard of last at {rfc3339(since)}"
    if _is_node_away(state):
        return f"the node itself is not Ready, and {heard}"
    if state.plugin is None:
        return f"{heard}, and has no pod there now"
    return f"{heard}: it hangs, or does not reach the API server (pod {state.plugin.name})"


def doubt_share_node(state: ObservedState) -> Iterator[DoubtShareNode]:
    """Yields what takes back what is still said to be true. A plugin that is back says it again; what it said
    to be wrong stays."""
    share, why, since = state.share, why_silent(state), _silent_since(state)
    if share is None or share.deleting or since is None:
        return
    reason = NODE_NOT_READY if _is_node_away(state) else PLUGIN_SILENT
    said = (share.conditions.get(type_) for type_ in DOUBTED)
    doubted = tuple(condition_unknown(each.type, reason, why) for each in said if each and each.is_true)
    if doubted:
        yield DoubtShareNode(share.name, share.uid, since, doubted)


def _silent_since(state: ObservedState) -> datetime | None:
    """Returns None also where the plugin has reported since: it is back, and its Lease is looked at later.
    Both times are by the node's clock."""
    share, since = state.share, state.unavailable_since
    has_reported = since and share and share.registered_since and share.registered_since > since
    return None if has_reported else since


def _is_node_away(state: ObservedState) -> bool:
    return state.node is None or not state.node.ready
