"""Foreign units in the kubelet's list, in place of as many of our own: then its sums are those of the cards.

The kubelet admits a container anew after a reboot only while the devices that it has are listed as healthy.
Source: ``devicesToAllocate`` of ``devicemanager.ManagerImpl`` (1.36).
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gpushare_plugin.decide.allocations import AssignedDevices
from gpushare_plugin.decide.environment import UnusableUnitsError
from gpushare_plugin.decide.foreign_units import foreign_doubt, foreign_shares
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.unit_ids import UnitSet

LONGEST_ID = 63
"""Bytes: the kubelet knows no longer ones."""


@dataclass(frozen=True, slots=True)
class StandIns:
    """What the list has beside our units, and what of these it does not have."""

    ids: tuple[str, ...] = ()
    """Foreign ones, of the resource in which this node offers its units."""
    withheld: frozenset[int] = frozenset()

    @property
    def encoded(self) -> list[bytes]:
        return [text.encode() for text in self.ids]


NO_STAND_INS = StandIns()


def stand_ins(layout: Layout, name: str, assigned: AssignedDevices) -> StandIns:
    """Returns the foreign units that pods have of the extended resource ``name``.

    Those of another resource keep our units from being offered, too; where a card is given out beyond its
    size, all that nobody has.
    """
    shares = foreign_by_card(layout, assigned)
    if not shares:
        return NO_STAND_INS
    held = {*assigned.numbers()}
    withheld: set[int] = set()
    for placed in layout.cards:
        free = [number for number in reversed(placed.numbers) if number not in held]
        withheld.update(free[: shares.get(placed.uuid, 0)])
    return StandIns(tuple(sorted(_ids(name, assigned))), frozenset(withheld))


def foreign_by_card(layout: Layout, assigned: AssignedDevices) -> Mapping[str, int]:
    """Returns card UUID -> units of ``layout`` that are given out there under foreign IDs."""
    shares: Counter[str] = Counter()
    for units in assigned.foreign():
        shares.update(foreign_shares(units, layout))
    return shares


def require_room_beside_foreign(numbers: Collection[int], layout: Layout, assigned: AssignedDevices) -> None:
    """Raises ``UnusableUnitsError`` where units of ours with these ``numbers`` and foreign ones are more than
    their card has: the kubelet may not have got yet the list that keeps them apart."""
    foreign = foreign_by_card(layout, assigned)
    if not foreign:
        return
    held = UnitSet([*assigned.numbers(), *numbers])
    for placed in {each.uuid: each for each in map(layout.card_of, numbers) if each}.values():
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
        for each in units
        if layout and (doubt := foreign_doubt(each, layout))
    ]


def _ids(name: str, assigned: AssignedDevices) -> set[str]:
    return {
        text
        for units in assigned.foreign()
        for each in units
        if each.name == name
        for text in each.ids
        if len(text.encode()) <= LONGEST_ID
    }
