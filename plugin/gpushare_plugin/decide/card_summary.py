"""One card in a word, for a column of ``kubectl get``."""

from gpushare_core.api.enums import Health, Mode
from gpushare_core.api.node_object import CardStatus

FREE = "free"
WHOLE = "whole"
"""A card that a pod has for itself."""


def card_summary(card: CardStatus, mode: str) -> str:
    """Returns who has what of ``card``: ``12/16`` units, or of whole cards ``whole`` and ``free``.

    ``mode``: the one in force. In Mixed each card is locked to what it serves, by the name of a mode: then
    that is said, too, as in ``memory:12/16``, and a card without a lock is free. A card to which no new pod
    comes says why, as in ``12/16(cordoned)``.
    """
    return f"{_use(card, mode)}{_closed(card)}"


def _closed(card: CardStatus) -> str:
    """Returns why no new pod comes to it, or nothing."""
    if card.health is Health.UNHEALTHY:
        return "(unhealthy)"
    return "(cordoned)" if card.cordoned else ""


def _use(card: CardStatus, mode: str) -> str:
    shared = f"{card.allocated_units}/{card.units}"
    if mode == Mode.MIXED:
        return _locked(card.lock, shared)
    if mode == Mode.EXCLUSIVE:
        return WHOLE if card.allocated_units else FREE
    return shared


def _locked(lock: str, shared: str) -> str:
    if not lock:
        return FREE
    return WHOLE if lock == Mode.EXCLUSIVE else f"{lock.lower()}:{shared}"
