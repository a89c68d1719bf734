"""Other device plugins that give away the cards of a policy's nodes."""

from collections.abc import Mapping

from gpushare_core.api.enums import Source
from gpushare_core.api.served import Problem
from gpushare_core.dialects.table import SHARED_RESOURCES
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.decide.nodes.dialect_names import own_names
from gpushare_operator.policies.conditions import CARDS_OFFERED_TWICE
from gpushare_operator.policies.wording import listed


def other_plugins(offered: Mapping[str, frozenset[str]]) -> list[Problem]:
    """Returns the problem of nodes where NVIDIA's own device plugin offers the shared cards, too: neither
    plugin knows what the other has given away. ``offered``: node name -> resources, never empty."""
    if not offered:
        return []
    resources = ", ".join(sorted(frozenset().union(*offered.values())))
    message = (
        f"another device plugin offers {resources} on {listed(offered)}: the cards there are given away"
        " twice; keep that plugin off nodes that share their cards"
    )
    return [Problem(CARDS_OFFERED_TWICE, message)]


def offered_by_others(state: ObservedState) -> frozenset[str]:
    """Returns the resources by which another plugin offers the cards of a node that shares them."""
    node, share = state.node, state.share
    if node is None or share is None or share.spec.get("devices", {}).get("source", "") != Source.NVML:
        return frozenset()
    return SHARED_RESOURCES & set(node.offered) - node.zeros - set(own_names(node))
