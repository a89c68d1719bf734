"""Units that the plugin of a replaced system gave out, under device IDs of its own.

The kubelet keeps them in its books, under a resource that may be ours now, for as long as their pods run.
Such an ID names a card and none of our units: it counts on that card.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.layout import Layout, PlacedCard
from gpushare_plugin.decide.unit_ids import UnknownUnitError, decode_id

_DIALECTS: Mapping[str, Dialect] = {
    name: dialect for dialect in (*DIALECTS.values(), GPUSHARE) for name in dialect.resources
}


@dataclass(frozen=True, slots=True)
class ForeignUnits:
    """Devices of one container and one card whose IDs differ in the number at their end."""

    name: str
    """Of the extended resource under which the kubelet keeps them."""
    card: str
    """UUID or index, as the IDs have it."""
    prefix: str
    """What the IDs begin with."""
    numbers: "array[int]"
    """What they end with, ascending; empty where ``prefix`` is the only ID."""
    size: int = 0
    """Bytes of one unit of memory, as the container was told; 0 when unknown."""

    @property
    def ids(self) -> list[str]:
        return [f"{self.prefix}{number}" for number in self.numbers] or [self.prefix]

    @property
    def count(self) -> int:
        return len(self.numbers) or 1

    @property
    def key(self) -> tuple[str, int, int]:
        """No two containers have that in common, unless one lends it to the other."""
        return self.prefix, min(self.numbers, default=-1), self.count

    def placed(self, layout: Layout) -> PlacedCard | None:
        """Returns the card, or None where the node has no such card (any more)."""
        return next((each for each in layout.cards if self._is_on(each)), None)

    def _is_on(self, placed: PlacedCard) -> bool:
        return self.card in (placed.uuid, str(placed.card.index))

    def units_on(self, placed: PlacedCard, layout: Layout) -> int:
        """Returns how many units of ``layout`` contain these: rather more where their size is unknown."""
        if RESOURCES[self.name] is not ResourceClass.MEMORY:
            return placed.units
        if self.size:
            return layout.unit.units_for(self.count * self.size, placed.card.memory)
        return self.count if layout.unit.resource is ResourceClass.MEMORY else placed.units

    def has_size_of(self, layout: Layout) -> bool:
        """Whether one of them is one unit of ``layout``, as far as that is known."""
        is_memory = RESOURCES[self.name] is ResourceClass.MEMORY
        return not (is_memory and self.size) or (layout.unit.meaning == (ResourceClass.MEMORY, self.size))


def dialect_of(name: str) -> Dialect:
    """Returns whose the extended resource ``name`` is; ours are those of no replaced system."""
    return _DIALECTS[name]


ForeignContainers = Mapping[str, tuple[ForeignUnits, ...]]
"""Container -> its foreign units; only containers that have some."""


def sort_ids(name: str, ids: Iterable[str]) -> tuple["array[int]", tuple[ForeignUnits, ...]]:
    """Returns the numbers of our own units among ``ids`` of the extended resource ``name``, and the others.

    Under our own names an ID that we do not know is no unit.
    """
    dialect, own, cards = dialect_of(name), array("I"), list[tuple[str, str]]()
    for text in ids:
        card = dialect.codec.card_of(text)
        if card is None:
            try:
                own.append(decode_id(text))
                continue
            except UnknownUnitError:
                card = text.partition("::")[0]  # NVIDIA's plugin: the UUID, and which share of a shared card
        cards.append((text, str(card)))
    return own, () if dialect is GPUSHARE else _grouped(name, cards)


def _grouped(name: str, cards: Iterable[tuple[str, str]]) -> tuple[ForeignUnits, ...]:
    groups: dict[tuple[str, str], set[int]] = {}
    for text, card in cards:
        prefix, numbers = _split(text)
        groups.setdefault((prefix, card), set()).update(numbers)
    return tuple(
        ForeignUnits(name, card, prefix, array("I", sorted(numbers)))
        for (prefix, card), numbers in sorted(groups.items())
    )


def _split(text: str) -> tuple[str, list[int]]:
    """Returns what is before the number at the end, and that; all of it where the two would not make it."""
    prefix, hyphen, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10 and str(int(number)) == number
    return (prefix + hyphen, [int(number)]) if hyphen and is_number else (text, [])


def foreign_shares(units: Iterable[ForeignUnits], layout: Layout) -> dict[str, int]:
    """Returns card UUID -> units of ``layout``. A device that containers lend each other counts once."""
    shares: dict[str, int] = {}
    for each in merged(units):
        if placed := each.placed(layout):
            shares[placed.uuid] = shares.get(placed.uuid, 0) + each.units_on(placed, layout)
    return shares


def merged(units: Iterable[ForeignUnits]) -> Iterator[ForeignUnits]:
    """Yields the units, every device once."""
    numbers: dict[tuple[str, str], set[int]] = {}
    first: dict[tuple[str, str], ForeignUnits] = {}
    for each in units:
        key = each.name, each.prefix
        numbers.setdefault(key, set()).update(each.numbers)
        if not (known := first.setdefault(key, each)).size:
            first[key] = replace(known, size=each.size)
    for key, each in first.items():
        yield replace(each, numbers=array("I", sorted(numbers[key])))
