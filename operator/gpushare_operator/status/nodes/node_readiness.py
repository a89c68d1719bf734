"""Why a node that a policy has enabled does not share its cards yet."""

from collections.abc import Iterator

from gpushare_core.api.conditions import FALSE
from gpushare_core.api.names import ISOLATION_READY, REGISTERED
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.decide.unavailable_plugins import why_unavailable


def why_not_ready(state: ObservedState) -> str:
    """Returns a message; empty when the node's plugin offers what the policy asks for now."""
    return next(_obstacles(state), "")


def _obstacles(state: ObservedState) -> Iterator[str]:
    share, pod = state.share, state.plugin
    # On a node that is not Ready nothing else can be expected.
    if state.node is None or not state.node.ready:
        yield "the node itself is not Ready"
    # The operator's own part comes before the plugin's.
    if share is None:
        yield "its GPUShareNode is being created"
        return
    # What a plugin reported before it became unavailable is not true any more.
    if why := why_unavailable(state):
        yield why
    registered = share.conditions.get(REGISTERED)
    # A report on a former generation says nothing about this one.
    if registered is None or share.observed_generation != share.generation:
        waiting = f": pod {pod.name} waits: {pod.waiting}" if pod and pod.waiting else ""
        yield f"its plugin has not answered yet{waiting}"
    # The report of a former plugin says nothing about one that does not start, as with other settings.
    if pod and not (pod.ready or pod.started):
        waiting = f": {pod.waiting}" if pod.waiting else ""
        yield f"pod {pod.name} of its plugin has not started yet{waiting}"
    # The plugin runs: now it is up to the kubelet.
    if registered and registered.status != "True":
        yield f"{registered.reason}: {registered.message}"
    # It offers nothing new until its containers can be kept to their units.
    isolated = share.conditions.get(ISOLATION_READY)
    if isolated and isolated.status == FALSE:
        yield f"{isolated.reason}: {isolated.message}"
