"""A card in a word for ``kubectl get``, and in a line for ``kubectl describe``."""

from gpushare_core.api.enums import Health, Mode
from gpushare_core.api.share_node import CardStatus

FREE = "free"
WHOLE = "whole"
"""A card that one pod holds."""
_UNITS = {Mode.SLICES.value: "slices"}


def card_summary(card: CardStatus, mode: str) -> str:
    """Returns how much of ``card`` is held. ``mode``: the one in force.

    1. ``12/16``: units.
    2. ``whole`` or ``free``: in mode Exclusive.
    3. ``memory:12/16``, ``whole`` or ``free``: in mode Mixed, by the card's lock.

    A card that takes no new pod has the reason behind it, as in ``12/16(cordoned)``.
    """
    word = _held_word(card, mode)
    if card.health is Health.UNHEALTHY:
        return f"{word}(unhealthy)"
    return f"{word}(cordoned)" if card.cordoned else word


def card_line(card: CardStatus, mode: str) -> str:
    """Returns a line such as ``0: 12 of 16 units held, healthy, 16Gi, NVIDIA A100 (GPU-4f1c...)``."""
    cordoned = "cordoned" if card.cordoned else ""
    parts = (_held(card, mode), card.health.value.lower(), cordoned, card.memory, card.model)
    return f"{card.index}: {', '.join(filter(None, parts))} ({card.uuid})"


def _held(card: CardStatus, mode: str) -> str:
    units = f"{card.allocated_units} of {card.units} {_UNITS.get(card.lock or mode, 'units')} held"
    if Mode.EXCLUSIVE in (mode, card.lock):
        return "held by one pod" if card.allocated_units else FREE
    return FREE if mode == Mode.MIXED and not card.lock else units


def _held_word(card: CardStatus, mode: str) -> str:
    units = f"{card.allocated_units}/{card.units}"
    if mode == Mode.EXCLUSIVE:
        return WHOLE if card.allocated_units else FREE
    if mode != Mode.MIXED:
        return units
    if not card.lock:
        return FREE
    return WHOLE if card.lock == Mode.EXCLUSIVE else f"{card.lock.lower()}:{units}"
