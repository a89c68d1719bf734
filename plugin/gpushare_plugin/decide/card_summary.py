"""One card in a word, for a column of ``kubectl get``."""

from gpushare_core.api.share_node import CardStatus
from gpushare_core.placement.requests import ResourceClass

FREE = "free"
WHOLE = "whole"
"""A card that a pod has for itself."""


def card_summary(card: CardStatus, resource: ResourceClass | None) -> str:
    """Returns who has what of ``card``: ``12/16`` units, or of whole cards ``whole`` and ``free``.

    ``resource``: what the cards of the node are shared as; None in mode Mixed, where each card is locked to
    what it serves: then that is said, too, as in ``memory:12/16``, and a card without a lock is free.
    """
    if resource is ResourceClass.CARD:
        return WHOLE if card.allocated_units else FREE
    shared = f"{card.allocated_units}/{card.units}"
    if resource is not None:
        return shared
    lock = card.lock.lower()
    if not lock:
        return FREE
    return WHOLE if lock == ResourceClass.CARD else f"{lock}:{shared}"
