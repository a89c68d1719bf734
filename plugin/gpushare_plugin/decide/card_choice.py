"""Which units a container shall get: all of one card, and of the right one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpushare_core.placement.cards import Card, Strategy, choose, explain, largest_free
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.unit_set import UnitSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one call of GetPreferredAllocation is about."""

    size: int
    """Units that the container asks for."""
    rest: int
    """Units that the pod as a whole still needs, this container's included."""
    together_with: frozenset[str] = frozenset()
    """Cards that hold units of the pod already."""
    annotated: str | None = None
    """The card that the extender chose."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that other pods were promised there."""


class NothingFitsError(Exception):
    """No card can give what is asked; the text tells the user what was asked and what there is."""


def choose_units(
    wish: Wish, layout: Layout, *, available: UnitSet, included: Iterable[int], strategy: Strategy
) -> tuple[str, list[int]]:
    """The card's UUID and exactly ``wish.size`` units of it, ``included`` among them.

    ``available`` contains ``included``, and is used up.

    Raises:
        NothingFitsError: no single card has that many.
    """
    counts = {placed.uuid: available.count(placed.numbers) for placed in layout.cards}
    uuid = choose_card(wish, layout, counts, strategy)
    (placed,) = (each for each in layout.cards if each.uuid == uuid)
    given = list(included)
    available.discard(given)
    return uuid, [*given, *available.lowest(wish.size - len(given), placed.numbers)]


def choose_card(wish: Wish, layout: Layout, available: Mapping[str, int], strategy: Strategy) -> str:
    """UUID of the card, by these rules in this order.

    1. All containers of a pod share one card. 2. The annotated card, if it has room for the whole pod.
    3. By the placement engine, leaving others what they were promised. 4. Without that consideration.
    """
    if wish.together_with:
        return _same_card(wish, available)
    if wish.annotated and available.get(wish.annotated, 0) >= wish.rest:
        return wish.annotated
    for promised in (wish.promised, {}):
        if card := choose(_cards(layout, available, promised), wish.rest, strategy):
            return card.uuid
    raise NothingFitsError(explain(wish.rest, largest_free(_cards(layout, available, {}))))


def _same_card(wish: Wish, available: Mapping[str, int]) -> str:
    free = {uuid: available.get(uuid, 0) for uuid in sorted(wish.together_with)}
    if len(free) == 1 and min(free.values()) >= wish.size:
        return next(iter(free))
    told = ", ".join(f"{uuid} with {units} free" for uuid, units in free.items())
    raise NothingFitsError(
        f"insufficient GPU memory in one card: asked {wish.size} beside the pod's other units on {told}"
    )


def _cards(layout: Layout, available: Mapping[str, int], promised: Mapping[str, int]) -> list[Card]:
    return [
        Card(
            placed.uuid,
            placed.card.index,
            units=available.get(placed.uuid, 0),
            allocated=promised.get(placed.uuid, 0),
            healthy=placed.card.healthy,
        )
        for placed in layout.cards
    ]
