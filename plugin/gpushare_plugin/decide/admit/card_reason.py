"""Why a pod gets another card than the annotated one: in the words of logs and Events."""

from collections.abc import Iterable

from gpushare_plugin.decide.admit.preferred_allocation import ContainerRequest
from gpushare_plugin.decide.units.layout import Layout

SAME_POD = "the pod has units of another card already"
NOT_ON_NODE = "annotated card is not on this node"
CLOSED = "annotated card takes no new pods"
OTHER_CLASS = "annotated card serves another class"
NO_ROOM = "annotated card has no room"
KEPT_BY_KUBELET = "kept by the kubelet"
"""The plugin did not name these units: the kubelet had given them before, or did not ask which to take."""


def reason_for_other_card(request: ContainerRequest, layout: Layout, cards: Iterable[str]) -> str:
    """Returns why ``cards`` were chosen for ``request`` and not the annotated ones; empty where they were.

    ``layout`` is of the class that is asked for.
    """
    named = request.annotated_cards or request.hinted_cards
    if not named or {*cards} <= {*named}:
        return ""
    if request.pod_cards.difference(named):
        return SAME_POD
    missed = (uuid for uuid in named if uuid not in cards)
    found = (_why_not(uuid, request, layout) for uuid in missed)
    return next(filter(None, found), NO_ROOM)


def _why_not(uuid: str, request: ContainerRequest, layout: Layout) -> str:
    """Returns what keeps new pods from the card, however much room it has; empty where nothing does."""
    placed = next((placed for placed in layout.cards if placed.uuid == uuid), None)
    if placed is None:
        return NOT_ON_NODE
    if not placed.card.is_open:
        return CLOSED
    served = (request.locks or {}).get(uuid, layout.only.resource)
    return "" if served is layout.only.resource else OTHER_CLASS
