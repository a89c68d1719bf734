"""Why a node that a policy has enabled does not share its cards yet."""

from collections.abc import Callable

from gpushare_core.api.names import REGISTERED
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.decide.unavailable_plugins import why_unavailable
from gpushare_operator.policies.wording import first_failure


def why_not_ready(state: ObservedState) -> str:
    """Returns a message; empty when the node's plugin offers what the policy asks for now."""
    return first_failure(NODE_CHECKS, state) or ""


def _is_node_ready(state: ObservedState) -> str | None:
    return None if state.node and state.node.ready else "the node itself is not Ready"


def _has_share_node(state: ObservedState) -> str | None:
    return None if state.share else "its GPUShareNode is being made"


def _has_plugin_answered(state: ObservedState) -> str | None:
    share = state.share
    if share and REGISTERED in share.conditions and share.observed_generation == share.generation:
        return None
    pod = state.plugin
    waiting = f": pod {pod.name} waits: {pod.waiting}" if pod and pod.waiting else ""
    return f"its plugin has not answered yet{waiting}"


def _has_plugin_started(state: ObservedState) -> str | None:
    """With other settings the container of a new pod may not start."""
    pod = state.plugin
    if pod is None or pod.ready or pod.started:
        return None
    waiting = f": {pod.waiting}" if pod.waiting else ""
    return f"pod {pod.name} of its plugin has not started yet{waiting}"


def _is_plugin_available(state: ObservedState) -> str | None:
    return why_unavailable(state) or None


def _is_registered(state: ObservedState) -> str | None:
    registered = state.share.conditions.get(REGISTERED) if state.share else None
    if registered is None or registered.status == "True":
        return None
    return f"{registered.reason}: {registered.message}"


NODE_CHECKS: tuple[Callable[[ObservedState], str | None], ...] = (
    # On a node that is not Ready nothing else can be expected.
    _is_node_ready,
    # The operator's own part comes before the plugin's.
    _has_share_node,
    # What a plugin reported before it became unavailable is not true any more.
    _is_plugin_available,
    # A report on a former generation says nothing about this one.
    _has_plugin_answered,
    # The report of a former plugin says nothing about one that does not start.
    _has_plugin_started,
    # The plugin runs: now it is up to the kubelet.
    _is_registered,
)
