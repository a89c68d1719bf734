"""Which units a container shall get: on the right cards, and laid on them as the mode has it."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.locks import Locks, open_cards
from gpushare_plugin.decide.units.unit_ids import UnitSet


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceRequest:
    """What GetPreferredAllocation is asked for one container, without IDs that name no unit."""

    available: "array[int]"
    """Numbers of the units that the kubelet calls available."""
    included: "array[int]"
    """Of those that have to be among the chosen ones."""
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRequest:
    """What one container asks for in a call of GetPreferredAllocation, and what is known of its pod."""

    units: int
    pod_units: int
    """Units that the pod as a whole still needs, this container's included."""
    pod_cards: frozenset[str] = frozenset()
    """Cards that hold units of the pod already."""
    annotated_cards: tuple[str, ...] = ()
    """The cards that the extender chose."""
    hinted_cards: tuple[str, ...] = ()
    """Those that anybody may have annotated: only what nobody else was promised is given there."""
    promised: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that other pods were promised there."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that other pods have there although the kubelet calls them available."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Card UUID -> units that are free there, where that may be fewer than the kubelet calls available."""
    locks: Locks | None = None
    """The class that each card in use serves; None on a node that serves one class alone."""


class NothingFitsError(Exception):
    """No cards can give what is asked; the text tells the user what was asked and what there is."""


def choose_units(
    request: ContainerRequest,
    layout: Layout,
    *,
    available: UnitSet,
    included: Iterable[int],
    strategy: Strategy,
) -> tuple[tuple[str, ...], list[int]]:
    """Returns the cards' UUIDs and exactly ``request.units`` units of them, ``included`` among them.

    ``layout`` is of the class that is asked for. Cards that serve another one now give nothing.

    ``available`` contains ``included``, and is used up.

    Raises:
        NothingFitsError: no cards have that many.
    """
    layout = open_cards(layout, request.locks or {})
    counts = {
        placed.uuid: _free(placed, available, request) - request.lost.get(placed.uuid, 0)
        for placed in layout.cards
    }
    chosen = [*included]
    shares: Mapping[str, int]
    if layout.only.resource is ResourceClass.MEMORY:
        shares = {choose_card(request, layout, counts, strategy): request.units - len(chosen)}
    else:
        shares = choose_distinct(request, layout, counts, strategy, count=request.units - len(chosen))
    cards = tuple(dict.fromkeys([*layout.shares(chosen), *shares]))
    available.discard(chosen)
    for placed in layout.cards:
        chosen += available.lowest(shares.get(placed.uuid, 0), placed.numbers)
    return cards, chosen


def _free(placed: PlacedCard, available: UnitSet, request: ContainerRequest) -> int:
    """A card that has just been closed may be available still by the list that the kubelet knows."""
    if not placed.card.is_open and placed.uuid not in request.pod_cards:
        return 0
    count = available.count(placed.numbers)
    return min(count, request.limits.get(placed.uuid, count))


def choose_distinct(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy, *, count: int
) -> Mapping[str, int]:
    """Returns card UUID -> 1 for ``count`` cards of which the pod has nothing yet, by these rules.

    1. The annotated cards, if all of them have room. 2. The hinted ones, if they have beside what others were
    promised. 3. By the placement engine, leaving others that. 4. Without that consideration.

    Raises:
        NothingFitsError: too few cards have room.
    """
    others = {uuid: units for uuid, units in available.items() if uuid not in request.pod_cards}
    for named, free in _named(request, others):
        wanted = [uuid for uuid in named if uuid not in request.pod_cards][:count]
        if len(wanted) == count and all(free.get(uuid, 0) > 0 for uuid in wanted):
            return dict.fromkeys(wanted, 1)
    mode = mode_serving(layout.only.resource)
    for promised in (request.promised, {}):
        if chosen := mode.choose(_cards(layout, others, promised, request.locks), count, strategy):
            return chosen
    raise NothingFitsError(mode.explain(count, mode.room(_cards(layout, others, {}, request.locks))))


def choose_card(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy
) -> str:
    """Returns the UUID of the card, by these rules in this order.

    1. All containers of a pod share one card. 2. An annotated card, if it has room for the whole pod. 3. A
    hinted one, if it has beside what others were promised. 4. By the placement engine, leaving others that.
    5. Without that consideration.

    Raises:
        NothingFitsError: no card has room.
    """
    if request.pod_cards:
        return _same_card(request, available)
    for named, free in _named(request, available):
        for card in named:
            if free.get(card, 0) >= request.pod_units:
                return card
    mode = mode_serving(layout.only.resource)
    for promised in (request.promised, {}):
        if chosen := mode.choose(
            _cards(layout, available, promised, request.locks), request.pod_units, strategy
        ):
            return next(iter(chosen))
    room = mode.room(_cards(layout, available, {}, request.locks))
    raise NothingFitsError(mode.explain(request.pod_units, room))


def _named(
    request: ContainerRequest, available: Mapping[str, int]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, int]]]:
    """Yields the cards that annotations name, with what is free there for this pod."""
    yield request.annotated_cards, available
    yield (
        request.hinted_cards,
        {uuid: units - request.promised.get(uuid, 0) for uuid, units in available.items()},
    )


def _same_card(request: ContainerRequest, available: Mapping[str, int]) -> str:
    free = {uuid: available.get(uuid, 0) for uuid in sorted(request.pod_cards)}
    if len(free) == 1 and min(free.values()) >= request.units:
        return next(iter(free))
    cards = ", ".join(f"{uuid} with {units} free" for uuid, units in free.items())
    raise NothingFitsError(
        f"insufficient GPU memory in one card: asked {request.units} beside the pod's other units on {cards}"
    )


def _cards(
    layout: Layout, available: Mapping[str, int], promised: Mapping[str, int], locks: Locks | None
) -> list[Card]:
    return [
        Card(
            placed.uuid,
            placed.card.index,
            units=placed.units,
            allocated=placed.units - available.get(placed.uuid, 0) + promised.get(placed.uuid, 0),
            healthy=placed.card.is_open,
            numa_node=placed.card.numa_node,
            link_group=placed.card.link_group,
            lockable=locks is not None and placed.uuid not in locks,
        )
        for placed in layout.cards
    ]
