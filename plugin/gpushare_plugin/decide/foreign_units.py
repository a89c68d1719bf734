"""Units that the plugin of a replaced system gave out, under device IDs of its own.

The kubelet keeps them in its books under a resource that is ours now, for as long as their pods run. Such an
ID names a card, and no unit of ours: it is a count on that card.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.layout import Layout, PlacedCard


@dataclass(frozen=True, slots=True)
class ForeignUnits:
    """What one container has of one card under foreign IDs, which differ in the number at their end."""

    resource: ResourceClass
    card: str
    """UUID, or index, as the IDs name it."""
    prefix: str
    """What the IDs begin with."""
    numbers: "array[int]"
    """What they end with, ascending; empty where ``prefix`` is the only ID."""
    size: int = 0
    """Bytes of one unit, as its plugin told the container; 0 when unknown."""

    @property
    def ids(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in self.numbers] or [self.prefix]

    @property
    def count(self) -> int:
        return len(self.numbers) or 1

    @property
    def key(self) -> tuple[str, int, int]:
        """No two containers have that in common."""
        return self.prefix, min(self.numbers, default=-1), self.count

    def placed(self, layout: Layout) -> PlacedCard | None:
        """Returns the card, or None where the node has no such card (any more)."""
        return next((each for each in layout.cards if self._is_on(each)), None)

    def units_on(self, placed: PlacedCard, layout: Layout) -> int:
        """Returns how many units of ``layout`` contain these; more rather than fewer where that is unclear."""
        unit, memory = layout.unit, placed.card.memory
        if self.resource is not ResourceClass.MEMORY:
            return placed.units
        if self.size:
            return unit.units_for(self.count * self.size, memory)
        return self.count if unit.resource is ResourceClass.MEMORY else placed.units

    def _is_on(self, placed: PlacedCard) -> bool:
        return self.card in (placed.uuid, str(placed.card.index))


ForeignContainers = Mapping[str, Sequence[ForeignUnits]]
"""Container -> its foreign units."""


def group_ids(resource: ResourceClass, cards: Iterable[tuple[str, str]]) -> tuple[ForeignUnits, ...]:
    """Returns the units of one container; ``cards`` are pairs of a foreign ID and the card that it names."""
    groups: dict[tuple[str, str], list[int]] = {}
    for text, card in cards:
        prefix, number = _split(text)
        groups.setdefault((prefix, card), []).extend(number)
    return tuple(
        ForeignUnits(resource, card, prefix, array("I", sorted(numbers)))
        for (prefix, card), numbers in sorted(groups.items())
    )


def _split(text: str) -> tuple[str, list[int]]:
    """Returns what is before the number at the end, and the number; no number where it could not be put
    together again."""
    prefix, found, number = text.rpartition("-")
    is_plain = number.isascii() and number.isdecimal() and len(number) < 10 and str(int(number)) == number
    return (prefix + found, [int(number)]) if found and is_plain else (text, [])


def foreign_shares(units: Iterable[ForeignUnits], layout: Layout) -> dict[str, int]:
    """Returns card UUID -> units of ``layout``. An ID that several containers share counts once."""
    shares: dict[str, int] = {}
    for each in _distinct(units):
        if placed := each.placed(layout):
            held = shares.get(placed.uuid, 0) + each.units_on(placed, layout)
            shares[placed.uuid] = (
                min(held, placed.room) if each.resource is not ResourceClass.MEMORY else held
            )
    return shares


def _distinct(units: Iterable[ForeignUnits]) -> Iterator[ForeignUnits]:
    """Yields the units of each card together, every ID once."""
    merged: dict[tuple[ResourceClass, str, str, int], set[int]] = {}
    for each in units:
        merged.setdefault((each.resource, each.card, each.prefix, each.size), set()).update(each.numbers)
    for (resource, card, prefix, size), numbers in merged.items():
        yield ForeignUnits(resource, card, prefix, array("I", sorted(numbers)), size)


@dataclass(frozen=True, slots=True)
class ForeignDevices:
    """How foreign units stand in the kubelet's list in place of our own: its sums stay what they are."""

    listed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Card UUID -> foreign IDs to list, in order."""
    withheld: frozenset[int] = frozenset()
    """Numbers of our own units that are not offered."""
