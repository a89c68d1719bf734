"""One card in a word, for a column of ``kubectl get``, and in a line, for ``kubectl describe``."""

from gpushare_core.api.enums import Health, Mode
from gpushare_core.api.share_node import CardStatus

FREE = "free"
WHOLE = "whole"
"""A card that a pod has for itself."""


_UNITS = {Mode.SLICES.value: "slices"}


def card_summary(card: CardStatus, mode: str) -> str:
    """Returns who has what of ``card``: ``12/16`` units, or of whole cards ``whole`` and ``free``.

    ``mode``: the one in force. In Mixed each card is locked to what it serves, by the name of a mode: then
    that is said, too, as in ``memory:12/16``, and a card without a lock is free. A card to which no new pod
    comes says why, as in ``12/16(cordoned)``.
    """
    return f"{_use(card, mode)}{_closed(card)}"


def card_line(card: CardStatus, mode: str) -> str:
    """Returns a line such as ``0: 12 of 16 units held, healthy, 16Gi, NVIDIA A100 (GPU-4f1c...)``; ``mode``
    as above."""
    cordoned = "cordoned" if card.cordoned else ""
    parts = (_held(card, mode), card.health.value.lower(), cordoned, card.memory, card.model)
    return f"{card.index}: {', '.join(filter(None, parts))} ({card.uuid})"


def _held(card: CardStatus, mode: str) -> str:
    """Returns who has what of ``card``, in words."""
    units = f"{card.allocated_units} of {card.units} {_UNITS.get(card.lock or mode, 'units')} held"
    if Mode.EXCLUSIVE in (mode, card.lock):
        return "held by one pod" if card.allocated_units else FREE
    return FREE if mode == Mode.MIXED and not card.lock else units


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
