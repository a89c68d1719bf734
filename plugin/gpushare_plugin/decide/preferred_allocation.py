"""Which units a container shall get: all of one card, and of the right one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.modes import MEMORY
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.unit_ids import UnitSet


@dataclass(frozen=True, slots=True)
class PreferredCard:
    """What GetPreferredAllocation answered for a pod: the card, and for how many of its containers."""

    card: str
    containers: int = 1


PreferredCards = Mapping[str, PreferredCard]
"""By the pod's UID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """What one container asks for in a call of GetPreferredAllocation, and what is known of its pod."""

    units: int
    pod_units: int
    """Units that the pod as a whole still needs, this container's included."""
    pod_cards: frozenset[str] = frozenset()
    """Cards that hold units of the pod already."""
    annotated_card: str | None = None
    """The card that the extender chose."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that other pods were promised there."""
    forgotten: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that other pods have there although the kubelet calls them available."""


class NothingFitsError(Exception):
    """No card can give what is asked; the text tells the user what was asked and what there is."""


def choose_units(
    request: ContainerRequest,
    layout: Layout,
    *,
    available: UnitSet,
    included: Iterable[int],
    strategy: Strategy,
) -> tuple[str, list[int]]:
    """Returns the card's UUID and exactly ``request.units`` units of it, ``included`` among them.

    ``available`` contains ``included``, and is used up.

    Raises:
        NothingFitsError: no single card has that many.
    """
    counts = {
        placed.uuid: available.count(placed.numbers) - request.forgotten.get(placed.uuid, 0)
        for placed in layout.cards
    }
    uuid = choose_card(request, layout, counts, strategy)
    (placed,) = (placed for placed in layout.cards if placed.uuid == uuid)
    chosen = list(included)
    available.discard(chosen)
    return uuid, [*chosen, *available.lowest(request.units - len(chosen), placed.numbers)]


def choose_card(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy
) -> str:
    """Returns the UUID of the card, by these rules in this order.

    1. All containers of a pod share one card. 2. The annotated card, if it has room for the whole pod.
    3. By the placement engine, leaving others what they were promised. 4. Without that consideration.

    Raises:
        NothingFitsError: no card has room.
    """
    if request.pod_cards:
        return _same_card(request, available)
    if request.annotated_card and available.get(request.annotated_card, 0) >= request.pod_units:
        return request.annotated_card
    for promised in (request.promised, {}):
        if chosen := MEMORY.choose(_cards(layout, available, promised), request.pod_units, strategy):
            return next(iter(chosen))
    room = MEMORY.room(_cards(layout, available, {}))
    raise NothingFitsError(MEMORY.explain(request.pod_units, room))


def _same_card(request: ContainerRequest, available: Mapping[str, int]) -> str:
    free = {uuid: available.get(uuid, 0) for uuid in sorted(request.pod_cards)}
    if len(free) == 1 and min(free.values()) >= request.units:
        return next(iter(free))
    cards = ", ".join(f"{uuid} with {units} free" for uuid, units in free.items())
    raise NothingFitsError(
        f"insufficient GPU memory in one card: asked {request.units} beside the pod's other units on {cards}"
    )


def _cards(layout: Layout, available: Mapping[str, int], promised: Mapping[str, int]) -> list[Card]:
    return [
        Card(
            placed.uuid,
            placed.card.index,
            units=placed.units,
            allocated=placed.units - available.get(placed.uuid, 0) + promised.get(placed.uuid, 0),
            healthy=placed.card.healthy,
        )
        for placed in layout.cards
    ]
