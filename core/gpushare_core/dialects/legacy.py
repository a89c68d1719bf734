"""What a pod of a replaced system has, as that system wrote it down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gpushare_core.text.json_object import MAX_REASON
from gpushare_core.text.whole_number import is_number

CardName: TypeAlias = str | int
"""UUID of a card, or its index where a system names cards by that."""


class MalformedAnnotationsError(ValueError):
    """Annotations that the system would not have written; the text says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyAllocation:
    """The cards of one pod, by their indexes. Nobody protected what they say."""

    cards: Mapping[int, int | None]
    """Index -> units, None where only the request of the pod says how many."""
    containers: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Container -> index -> units, where the system says it; it may be empty."""
    assigned: bool = False
    """Whether the system's plugin has given them to the pod."""

    def shares(self, total: int) -> dict[int, int]:
        """Returns index -> units of a pod that asks for ``total``, which are these together.

        The kubelet gives a pod what it asks for: the annotations tell only where that is. What they do not
        place is on the first of their cards.
        """
        if not self.cards:
            return {}
        left, shares = total, {}
        for index, units in self.cards.items():
            claimed = total // len(self.cards) if units is None else units
            shares[index] = min(claimed, left)
            left -= shares[index]
        shares[next(iter(shares))] += left
        return {index: units for index, units in shares.items() if units}


def read_number(annotations: Mapping[str, str], key: str) -> int:
    """Returns the decimal number under ``key``.

    Raises:
        MalformedAnnotationsError: it is missing, or no number from 0 up.
    """
    text = annotations.get(key, "")
    if not is_number(text):
        raise MalformedAnnotationsError(f"{key} is {text!r}, not a number")
    return int(text)
