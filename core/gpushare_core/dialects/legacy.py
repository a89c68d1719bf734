"""The cards of a pod of a replaced system, by that system's annotations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gpushare_core.text.json_object import MAX_REASON
from gpushare_core.text.whole_number import is_number

CardName: TypeAlias = str | int
"""UUID of a card, or its index where a system names cards by that."""


class MalformedAnnotationsError(ValueError):
    """Annotations that the system would not have written."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyAllocation:
    """The cards of one pod. Nothing protected these annotations: any author may have written them."""

    cards: Mapping[int, int | None]
    """Index -> units; None where only the pod's request has the number."""
    containers: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Container -> index -> units, where the system writes that."""
    assigned: bool = False
    """Whether the system's plugin has given the cards to the pod."""

    def shares(self, total: int) -> dict[int, int]:
        """Returns index -> units, ``total`` together: the pod's request.

        The kubelet gives a pod what it asks for, and the annotations say only on which cards. Units that they
        do not place are on their first card.
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
    """Raises ``MalformedAnnotationsError`` where the annotation is missing, or no number from 0 up."""
    text = annotations.get(key, "")
    if not is_number(text):
        raise MalformedAnnotationsError(f"{key} is {text!r}, not a number")
    return int(text)
