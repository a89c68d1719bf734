"""Foreign units in the kubelet's list, in place of as many of ours: so its sums are those of the cards.

The kubelet admits a container anew after a reboot only while the devices that it has are listed as healthy.
Source: ``devicesToAllocate`` of ``devicemanager.ManagerImpl`` (1.36).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.foreign_units import foreign_classes, foreign_doubt, foreign_shares
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.units.unit_ids import UnitSet

MAX_ID = 63
"""Bytes: the kubelet knows no longer ones."""


@dataclass(frozen=True, slots=True)
class DevicesOfReplacedPlugin:
    """What the lists have beside our units, and which of our units they leave out instead."""

    ids: Mapping[ResourceClass, tuple[str, ...]] = field(default_factory=dict)
    """Class -> foreign IDs of the resource in which this node offers units of that class."""
    withheld: frozenset[int] = frozenset()


NO_REPLACED_PLUGIN = DevicesOfReplacedPlugin()


def devices_of_replaced_plugin(
    layout: Layout, dialect: Dialect, assigned: AssignedDevices
) -> DevicesOfReplacedPlugin:
    """Returns the foreign units that pods have of the extended resources of ``dialect``.

    Foreign units of other resources keep ours from being offered, too. Of a card that is given out beyond its
    size all units are withheld that nobody has.
    """
    if not any(assigned.foreign()):
        return NO_REPLACED_PLUGIN
    held = {*assigned.numbers()}
    withheld: set[int] = set()
    for resource in layout.classes:
        shares = foreign_by_card(layout, resource, assigned)
        for placed in layout.of(resource).cards:
            free = [number for number in reversed(placed.numbers) if number not in held]
            withheld.update(free[: shares.get(placed.uuid, 0)])
    ids = {
        resource_class: tuple(sorted(_ids(dialect.resource_name(resource_class), assigned)))
        for resource_class in layout.classes
    }
    return DevicesOfReplacedPlugin(ids, frozenset(withheld))


def foreign_by_card(layout: Layout, resource: ResourceClass, assigned: AssignedDevices) -> Mapping[str, int]:
    """Returns card UUID -> units of one class that are given out there under foreign IDs."""
    shares: Counter[str] = Counter()
    for units in assigned.foreign():
        own = [unit for unit in units if unit.class_in(layout) is resource]
        shares.update(foreign_shares(own, layout))
    return shares


def foreign_locks(layout: Layout, assigned: AssignedDevices) -> dict[str, ResourceClass]:
    """Returns the class that cards serve by foreign units, where there is a choice."""
    if not layout.is_mixed:
        return {}
    return foreign_classes(chain.from_iterable(assigned.foreign()), layout)


def require_room_beside_foreign(numbers: Sequence[int], layout: Layout, assigned: AssignedDevices) -> None:
    """Raises ``UnusableUnitsError`` where ``numbers`` and foreign units are more than their card has: the
    kubelet may not have got the list yet that keeps them apart."""
    resource = layout.class_of(numbers[0]) if numbers else None
    foreign = foreign_by_card(layout, resource, assigned) if resource else {}
    if not resource or not foreign:
        return
    held, view = UnitSet([*assigned.numbers(), *numbers]), layout.of(resource)
    for placed in {card.uuid: card for card in map(view.card_of, numbers) if card}.values():
        used = held.count(placed.numbers) + foreign.get(placed.uuid, 0)
        if used > placed.units and foreign.get(placed.uuid):
            raise UnusableUnitsError(
                f"{used} of {placed.units} units of card {placed.card.index} ({placed.uuid}) would be in use:"
                f" the plugin that was replaced gave out {foreign[placed.uuid]} of them"
            )


def doubtful_units(layout: Layout | None, assigned: AssignedDevices) -> list[str]:
    """Returns for people which foreign units may be fewer than they count as."""
    return [
        f"{assignment.name} has {doubt}"
        for assignment in (assigned.pods.values() if layout else ())
        for units in assignment.foreign.values()
        for unit in units
        if layout and (doubt := foreign_doubt(unit, layout))
    ]


def _ids(name: str, assigned: AssignedDevices) -> set[str]:
    return {
        text
        for units in assigned.foreign()
        for unit in units
        if unit.name == name
        for text in unit.ids
        if len(text.encode()) <= MAX_ID
    }
