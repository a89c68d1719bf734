"""What one unit of a card is: so many bytes of its memory, or so large a part of the whole card."""

import re
from dataclasses import dataclass
from typing import ClassVar, Protocol

from gpushare_core.placement.quantity import MIB, parse_memory
from gpushare_core.placement.requests import ResourceClass

Meaning = tuple[ResourceClass, int]
"""What a unit is of, and its size: of memory in bytes, else how many of it make a card."""


class Unit(Protocol):
    """What an amount of 1 stands for on a card."""

    @property
    def resource(self) -> ResourceClass:
        """What amounts of it are asked for as."""

    @property
    def text(self) -> str:
        """As the status of a GPUShareNode and annotations write it; ``parse_unit`` reads it."""

    @property
    def meaning(self) -> Meaning:
        """Equal for units that are written differently and mean the same."""

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        """Returns the units of a card of ``memory`` bytes of which ``reserved`` stay out of sharing."""

    def memory_of(self, units: int, memory: int, /) -> int:
        """Returns the bytes that ``units`` are of a card of ``memory`` bytes."""

    def least_memory(self, units: int, /) -> int:
        """Returns the bytes that a card with so many ``units`` has at least."""

    def units_for(self, size: int, memory: int, /) -> int:
        """Returns the fewest units of a card of ``memory`` bytes that are ``size`` bytes or more."""


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """So many bytes, as the administrator wrote them."""

    text: str
    size: int
    """Bytes."""
    resource: ClassVar[ResourceClass] = ResourceClass.MEMORY

    @classmethod
    def parse(cls, text: str) -> "MemoryUnit":
        """Raises ``ValueError`` when ``text`` is no quantity or not positive."""
        size = parse_memory(text)
        if size <= 0:
            raise ValueError(f"a memory unit must be more than nothing, not {text!r}")
        return cls(text=text, size=size)

    @property
    def meaning(self) -> Meaning:
        return self.resource, self.size

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        return max(0, memory - reserved) // self.size

    def memory_of(self, units: int, _memory: int, /) -> int:
        return units * self.size

    def least_memory(self, units: int, /) -> int:
        return units * self.size

    def units_for(self, size: int, _memory: int, /) -> int:
        return -(-size // self.size)


@dataclass(frozen=True, slots=True)
class CardPart:
    """One of ``parts`` equal parts of a card; with one part the whole card."""

    resource: ResourceClass
    parts: int

    @property
    def text(self) -> str:
        return "1 card" if self.resource is ResourceClass.CARD else f"1/{self.parts} card"

    @property
    def meaning(self) -> Meaning:
        return self.resource, self.parts

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        return self.parts if memory > reserved else 0

    def memory_of(self, units: int, memory: int, /) -> int:
        """In whole MiB, so that it follows from the card's memory in MiB, as containers are told it."""
        return memory // MIB * units // self.parts * MIB

    def least_memory(self, _units: int, /) -> int:
        return 1

    def units_for(self, size: int, memory: int, /) -> int:
        """In whole MiB of the card, as containers are told it."""
        part = max(1, self.memory_of(1, memory))
        return -(-size // part)


WHOLE_CARD = CardPart(ResourceClass.CARD, 1)


@dataclass(frozen=True, slots=True)
class UnitFields:
    """The fields of the API from which the unit of a node follows."""

    memory_unit: str
    slices_per_card: int | None = None


_SLICE = re.compile("1/([1-9][0-9]?) card")


def convert_units(units: int, given: Meaning, wanted: Meaning) -> int | None:
    """Returns how many units that are ``wanted`` contain ``units`` that are ``given``.

    None between classes: what one is of the other depends on the card.
    """
    (resource, size), (wanted_resource, wanted_size) = given, wanted
    if resource is not wanted_resource:
        return None
    if resource is ResourceClass.MEMORY:
        return -(-units * size // wanted_size)
    return -(-units * wanted_size // size)


def parse_unit(text: str) -> Unit:
    """Returns the unit that has this ``text``. Raises ``ValueError`` for what is none."""
    if text == WHOLE_CARD.text:
        return WHOLE_CARD
    if match := _SLICE.fullmatch(text):
        return CardPart(ResourceClass.SLICE, int(match[1]))
    return MemoryUnit.parse(text)
