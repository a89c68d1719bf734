"""Units that the plugin of a replaced system gave out, under device IDs of its own.

The kubelet keeps them, under a resource that may be ours now, as long as their pods run. IDs of shared cards
say only how many units there are: that plugin gave its containers the card of the pod's annotation.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.unit_ids import UnknownUnitError, decode_id

_DIALECTS: Mapping[str, Dialect] = {
    name: dialect for dialect in (*DIALECTS.values(), GPUSHARE) for name in dialect.resources
}


def dialect_of(name: str) -> Dialect:
    """Returns the dialect of the extended resource ``name``. Our own names belong to no replaced system."""
    return _DIALECTS[name]


@dataclass(frozen=True, slots=True)
class ForeignUnits:
    """Devices that one container has under foreign IDs."""

    name: str
    """Of the extended resource under which the kubelet keeps them."""
    numbers: Mapping[str, "array[int]"]
    """What IDs begin with -> the numbers at their end, ascending; none where that is the whole ID."""
    card: str = ""
    """UUID, or index; empty when unknown."""
    size: int = 0
    """Bytes of one unit of memory, as the container was told; 0 when unknown."""

    @property
    def ids(self) -> list[str]:
        return [
            f"{prefix}{number}" for prefix, numbers in self.numbers.items() for number in (numbers or ("",))
        ]

    @property
    def count(self) -> int:
        return sum(len(numbers) or 1 for numbers in self.numbers.values())

    @property
    def key(self) -> tuple[str, int, int]:
        """Differs between any two pods."""
        prefix, numbers = next(iter(self.numbers.items()))
        return prefix, min(numbers, default=-1), self.count

    def view(self, layout: Layout) -> Layout:
        """Returns the units of the class of these; of the first class where nothing serves theirs."""
        return layout.of(self.class_in(layout))

    def class_in(self, layout: Layout) -> ResourceClass:
        """Returns the class as which these count in ``layout``."""
        resource = RESOURCES[self.name]
        return resource if resource in layout.classes else layout.classes[0]

    def cards(self, layout: Layout) -> list[PlacedCard]:
        """Returns the card: all cards while it is unknown which, none where the node does not have it."""
        named = [card for card in layout.cards if self.card in (card.uuid, str(card.card.index))]
        return named or (list(layout.cards) if self.is_on_unknown(layout) else [])

    def is_on_unknown(self, layout: Layout) -> bool:
        """Whether nothing says which card. An index that no card has is from before a card went: the cards
        after that one have other indices since."""
        indexes = {str(card.card.index) for card in layout.cards}
        return not self.card or (self.card.isdecimal() and self.card not in indexes)

    def units_on(self, placed: PlacedCard, layout: Layout, count: int) -> int:
        """Returns how many units of ``layout``, of one class, contain ``count`` of these.

        Too many where that is unclear: a whole card for what is not memory.
        """
        if not self.is_memory or (not self.size and layout.only.resource is not ResourceClass.MEMORY):
            return placed.units
        if not self.size:
            return count
        of_one = max(1, layout.memory_of(1, placed))
        return -(-count * self.size // of_one)

    @property
    def is_memory(self) -> bool:
        return RESOURCES[self.name] is ResourceClass.MEMORY


ForeignContainers = Mapping[str, tuple[ForeignUnits, ...]]
"""Container -> its foreign units; only containers that have some."""


def foreign_doubt(foreign: ForeignUnits, layout: Layout) -> str:
    """Returns for people why these may be fewer units than they count as; empty where they are not."""
    size = foreign.size if foreign.is_memory else 0
    if size and foreign.view(layout).only.meaning != (ResourceClass.MEMORY, size):
        return f"{foreign.count} units of {foreign.size // MIB}Mi each"
    if foreign.is_on_unknown(layout):
        named = f"index {foreign.card}, which none has" if foreign.card else "nothing"
        return (
            f"{foreign.count} units of one card, of which its plugin's answer or an annotation says {named}"
        )
    return ""


def sort_ids(name: str, ids: Iterable[str]) -> tuple["array[int]", tuple[ForeignUnits, ...]]:
    """Returns the numbers of our own units among ``ids`` of the extended resource ``name``, and the others.

    Under our own names an ID that we do not know is no unit.
    """
    dialect, own, foreign = dialect_of(name), array("I"), list[str]()
    for text in ids:
        try:
            number = decode_id(text)
        except UnknownUnitError:
            foreign.append(text)
            continue
        if dialect.codec.card_of(text) is None:
            own.append(number)
        else:
            foreign.append(text)
    return own, _foreign(name, foreign) if foreign and dialect is not GPUSHARE else ()


def _foreign(name: str, ids: Iterable[str]) -> tuple[ForeignUnits, ...]:
    if RESOURCES[name] is not ResourceClass.MEMORY:
        # The ID of a whole card names the card: NVIDIA's plugin adds ``::`` and a number to some.
        return tuple(
            ForeignUnits(name, {text: array("I")}, text.partition("::")[0] if text.startswith("GPU-") else "")
            for text in sorted({*ids})
        )
    numbers: dict[str, set[int]] = {}
    for text in ids:
        prefix, number = _split(text)
        numbers.setdefault(prefix, set()).update(number)
    return (ForeignUnits(name, {prefix: array("I", sorted(numbers[prefix])) for prefix in sorted(numbers)}),)


def _split(text: str) -> tuple[str, list[int]]:
    """Returns a prefix and the number at the end; no number where both together would not be ``text``."""
    prefix, hyphen, number = text.rpartition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10 and str(int(number)) == number
    return (prefix + hyphen, [int(number)]) if hyphen and is_number else (text, [])


def foreign_shares(foreign: Iterable[ForeignUnits], layout: Layout) -> dict[str, int]:
    """Returns card UUID -> units of one pod's ``foreign`` units, of the class that its card serves by them.

    A device that an init container lends to the next ones counts once.
    """
    shares: dict[str, int] = {}
    counted: set[str] = set()
    for devices in foreign:
        ids, view = {*devices.ids} - counted, devices.view(layout)
        counted |= ids
        for placed in devices.cards(view) if ids else ():
            units = shares.get(placed.uuid, 0) + devices.units_on(placed, view, len(ids))
            shares[placed.uuid] = units if devices.is_memory else placed.units
    return shares


def foreign_classes(foreign: Iterable[ForeignUnits], layout: Layout) -> dict[str, ResourceClass]:
    """Returns card UUID -> class of the ``foreign`` units there."""
    return {placed.uuid: devices.class_in(layout) for devices in foreign for placed in devices.cards(layout)}
