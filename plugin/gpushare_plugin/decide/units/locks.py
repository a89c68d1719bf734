"""Which class a card serves alone: in mode Mixed its first use locks it, until nobody has anything of it.

No state is kept: locks follow from what the kubelet has assigned, is assigning, or has lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.units.layout import Layout

Locks = Mapping[str, ResourceClass]
"""Card UUID -> the class that it serves. Without cards that are open to all, or that serve but one."""

NO_LOCKS: Locks = MappingProxyType({})


def locks_of_units(layout: Layout, holdings: Iterable[Sequence[int]]) -> dict[str, ResourceClass]:
    """Returns the locks that units in use make; each of ``holdings`` is of one container."""
    locks: dict[str, ResourceClass] = {}
    if not layout.is_mixed:
        return locks
    for numbers in holdings:
        if numbers and (resource := layout.class_of(numbers[0])):
            for card in layout.of(resource).shares(numbers):
                locks.setdefault(card, resource)
    return locks


def open_cards(layout: Layout, locks: Locks) -> Layout:
    """Returns ``layout``, of one class, without the cards that serve another class now."""
    resource = layout.only.resource
    kept = tuple(placed for placed in layout.cards if locks.get(placed.uuid, resource) is resource)
    return layout if len(kept) == len(layout.cards) else replace(layout, cards=kept)
