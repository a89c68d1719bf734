"""Why a node that a policy has enabled does not share its cards yet."""

from collections.abc import Callable

from gpushare_core.api.names import REGISTERED
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.decide.unavailable_plugins import why_silent
from gpushare_operator.policies.wording import first_failure


def why_not_ready(state: ObservedState) -> str:
    """Returns a message about a node; empty when its plugin offers what the policy asks for now."""
    return first_failure(NODE_CHECKS, state) or ""


def _is_node_ready(enabled: ObservedState) -> str | None:
    return None if enabled.node and enabled.node.ready else "the node itself is not Ready"


def _has_share_node(enabled: ObservedState) -> str | None:
    return None if enabled.share else "its GPUShareNode is being made"


def _has_plugin_answered(enabled: ObservedState) -> str | None:
    share = enabled.share
    if share and REGISTERED in share.conditions and share.observed_generation == share.generation:
        return None
    pod = enabled.plugin
    waiting = f": pod {pod.name} waits: {pod.waiting}" if pod and pod.waiting else ""
    return f"its plugin has not answered yet{waiting}"


def _has_plugin_started(enabled: ObservedState) -> str | None:
    """A pod that was made anew may have other settings, with which its container does not start."""
    pod = enabled.plugin
    if pod is None or pod.ready or pod.started:
        return None
    waiting = f": {pod.waiting}" if pod.waiting else ""
    return f"pod {pod.name} of its plugin has not started yet{waiting}"


def _is_plugin_heard(enabled: ObservedState) -> str | None:
    return why_silent(enabled) or None


def _is_registered(enabled: ObservedState) -> str | None:
    registered = enabled.share.conditions.get(REGISTERED) if enabled.share else None
    if registered is None or registered.status == "True":
        return None
    return f"{registered.reason}: {registered.message}"


NODE_CHECKS: tuple[Callable[[ObservedState], str | None], ...] = (
    # On a node that is not Ready nothing else can be expected.
    _is_node_ready,
    # The operator's own part comes before the plugin's.
    _has_share_node,
    # What it said before it fell silent is not true any more.
    _is_plugin_heard,
    # What the plugin says of a former generation says nothing of this one.
    _has_plugin_answered,
    # What the plugin before it has said says nothing of one that does not start.
    _has_plugin_started,
    # The plugin runs: now it is up to the kubelet.
    _is_registered,
)
