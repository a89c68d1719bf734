"""Which units a container shall get: on the right cards, laid on them as the mode has it, and why there."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.locks import Locks, open_cards
from gpushare_plugin.decide.units.unit_ids import UnitSet

SAME_POD = "the pod has units of another card already"
NOT_ON_NODE = "annotated card is not on this node"
CLOSED = "annotated card takes no new pods"
OTHER_CLASS = "annotated card serves another class"
NO_ROOM = "annotated card has no room"
KEPT_BY_KUBELET = "kept by the kubelet"
"""The plugin did not name these units: the kubelet had given them before, or did not ask which to take."""


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
    """Cards that anybody may have annotated: given as far as other pods were not promised the room."""
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
    """Returns the cards' UUIDs and exactly ``request.units`` units of them, ``included`` among them. Raises
    ``NothingFitsError`` where no cards have that many.

    ``layout`` is of the class that is asked for: cards that serve another class now give nothing.
    ``available`` contains ``included``, and is used up.
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
    """A card that has just been closed may still be available by the list that the kubelet knows."""
    if not placed.card.is_open and placed.uuid not in request.pod_cards:
        return 0
    count = available.count(placed.numbers)
    return min(count, request.limits.get(placed.uuid, count))


def choose_distinct(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy, *, count: int
) -> Mapping[str, int]:
    """Returns card UUID -> 1 for ``count`` cards of which the pod has nothing yet. Raises
    ``NothingFitsError`` where too few have room. The cards are the first of these:
    1. the annotated cards, if all of them have room;
    2. the hinted ones, if they have room beside what other pods were promised;
    3. those that the placement engine chooses beside what other pods were promised;
    4. those that it chooses whatever other pods were promised."""
    others = {uuid: units for uuid, units in available.items() if uuid not in request.pod_cards}
    for named, free in _named(request, others):
        wanted = [uuid for uuid in named if uuid not in request.pod_cards][:count]
        if len(wanted) == count and all(free.get(uuid, 0) > 0 for uuid in wanted):
            return dict.fromkeys(wanted, 1)
    return _engine_choice(request, layout, others, strategy, units=count)


def choose_card(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy
) -> str:
    """Returns the UUID of a card, the first of these. Raises ``NothingFitsError`` where no card has room.
    1. the card of the pod's other containers, with room or without;
    2. an annotated card, if it has room for the whole pod;
    3. a hinted one, if it has that beside what other pods were promised;
    4. the one that the placement engine chooses beside what other pods were promised;
    5. the one that it chooses whatever other pods were promised."""
    if request.pod_cards:
        return _same_card(request, available)
    for named, free in _named(request, available):
        for card in named:
            if free.get(card, 0) >= request.pod_units:
                return card
    return next(iter(_engine_choice(request, layout, available, strategy, units=request.pod_units)))


def _engine_choice(
    request: ContainerRequest, layout: Layout, available: Mapping[str, int], strategy: Strategy, *, units: int
) -> Mapping[str, int]:
    mode = mode_serving(layout.only.resource)
    for promised in (request.promised, {}):
        if chosen := mode.choose(_cards(layout, available, promised, request.locks), units, strategy):
            return chosen
    raise NothingFitsError(mode.explain(units, mode.room(_cards(layout, available, {}, request.locks))))


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


def reason_for_other_card(request: ContainerRequest, layout: Layout, cards: Iterable[str]) -> str:
    """Returns why ``cards`` were chosen for ``request`` and not the annotated ones; empty where they were.

    ``layout`` is of the class that is asked for.
    """
    named = request.annotated_cards or request.hinted_cards
    if not named or {*cards} <= {*named}:
        return ""
    if request.pod_cards.difference(named):
        return SAME_POD
    missed = (uuid for uuid in named if uuid not in cards)
    found = (_why_not(uuid, request, layout) for uuid in missed)
    return next(filter(None, found), NO_ROOM)


def _why_not(uuid: str, request: ContainerRequest, layout: Layout) -> str:
    """Returns what keeps new pods from the card, however much room it has; empty where nothing does."""
    placed = next((placed for placed in layout.cards if placed.uuid == uuid), None)
    if placed is None:
        return NOT_ON_NODE
    if not placed.card.is_open:
        return CLOSED
    served = (request.locks or {}).get(uuid, layout.only.resource)
    return "" if served is layout.only.resource else OTHER_CLASS
