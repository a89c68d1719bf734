"""What one unit of a card is: so many bytes of its memory, or so large a part of the whole card."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, Protocol

from gpushare_core.placement.quantity import MIB, parse_memory
from gpushare_core.placement.requests import ResourceClass

Meaning = tuple[ResourceClass, int]
"""What a unit is of, and its size: of memory in bytes, else how many of it make a card."""


SEPARATOR = ", "
"""Between the units of several classes."""


class NodeUnit(Protocol):
    """What the cards of a node are divided into: units of one class, or of several."""

    @property
    def text(self) -> str:
        """As the status of a GPUShareNode writes it; ``parse_node_unit`` reads it."""

    @property
    def parts(self) -> "tuple[Unit, ...]":
        """The unit of each class, in the order in which they lie on a card."""

    @property
    def meanings(self) -> tuple[Meaning, ...]:
        """Equal for units that are written differently and mean the same."""

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        """Returns the units of a card with ``memory`` bytes, of which ``reserved`` are not shared."""


class Unit(NodeUnit, Protocol):
    """What an amount of 1 of one class stands for on a card. Annotations write its ``text``."""

    @property
    def resource(self) -> ResourceClass:
        """The class that pods ask for."""

    @property
    def meaning(self) -> Meaning:
        """The only one of ``meanings``."""

    def memory_of(self, units: int, shared: int, /) -> int:
        """Returns the bytes of ``units`` on a card with ``shared`` bytes."""

    def least_memory(self, units: int, /) -> int:
        """Returns the bytes that a card with ``units`` has at least."""


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

    @property
    def meanings(self) -> tuple[Meaning, ...]:
        return (self.meaning,)

    @property
    def parts(self) -> tuple[Unit, ...]:
        return (self,)

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        return max(0, memory - reserved) // self.size

    def memory_of(self, units: int, _shared: int, /) -> int:
        return units * self.size

    def least_memory(self, units: int, /) -> int:
        return units * self.size


@dataclass(frozen=True, slots=True)
class CardPart:
    """One of ``of_card`` equal parts of what is shared of a card; with one part all of it."""

    resource: ResourceClass
    of_card: int

    @property
    def text(self) -> str:
        return "1 card" if self.resource is ResourceClass.CARD else f"1/{self.of_card} card"

    @property
    def meaning(self) -> Meaning:
        return self.resource, self.of_card

    @property
    def meanings(self) -> tuple[Meaning, ...]:
        return (self.meaning,)

    @property
    def parts(self) -> tuple[Unit, ...]:
        return (self,)

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        return self.of_card if memory > reserved else 0

    def memory_of(self, units: int, shared: int, /) -> int:
        """In whole MiB, as containers see it."""
        return shared // MIB * units // self.of_card * MIB

    def least_memory(self, _units: int, /) -> int:
        return 1


WHOLE_CARD = CardPart(ResourceClass.CARD, 1)


@dataclass(frozen=True, slots=True)
class MixedUnit:
    """What a card is divided into that serves any class: units of memory, slices, and the card as a whole."""

    memory: MemoryUnit
    slices: CardPart

    @property
    def parts(self) -> tuple[Unit, ...]:
        return (self.memory, self.slices, WHOLE_CARD)

    @property
    def text(self) -> str:
        return SEPARATOR.join(part.text for part in self.parts)

    @property
    def meanings(self) -> tuple[Meaning, ...]:
        return tuple(part.meaning for part in self.parts)

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        return sum(part.units_in(memory, reserved=reserved) for part in self.parts)


@dataclass(frozen=True, slots=True)
class UnitFields:
    """The fields of the API from which the unit of a node follows."""

    memory_unit: str
    slices_per_card: int | None = None


_USUAL_LENGTH = 32
"""Characters of a unit that is remembered: anybody may have written a text."""

_SLICE = re.compile("1/([1-9][0-9]?) card")


def convert_units(units: int, given: Meaning, wanted: Meaning) -> int | None:
    """Returns how many units with the meaning ``wanted`` contain ``units`` with the meaning ``given``; None
    between classes: that depends on the card."""
    (resource, size), (wanted_resource, wanted_size) = given, wanted
    if resource is not wanted_resource:
        return None
    if resource is ResourceClass.MEMORY:
        return -(-units * size // wanted_size)
    return -(-units * wanted_size // size)


def part_of(unit: NodeUnit, resource: ResourceClass) -> Unit | None:
    return next((part for part in unit.parts if part.resource is resource), None)


def with_memory(unit: NodeUnit, memory: MemoryUnit) -> NodeUnit:
    return replace(unit, memory=memory) if isinstance(unit, MixedUnit) else memory


def parse_node_unit(text: str) -> NodeUnit:
    """Raises ``ValueError`` for what is no unit of a node."""
    parts = [parse_unit(part) for part in text.split(SEPARATOR)]
    if len(parts) == 1:
        return parts[0]
    memory, slices, *rest = parts
    if not isinstance(memory, MemoryUnit) or not isinstance(slices, CardPart):
        raise ValueError(f"not the units of a node: {text!r}")
    if slices == WHOLE_CARD or rest != [WHOLE_CARD]:
        raise ValueError(f"not the units of a node: {text!r}")
    return MixedUnit(memory, slices)


def readable_unit(text: str) -> Unit | None:
    return _known_unit(text) if len(text) <= _USUAL_LENGTH else _unit(text)


def _unit(text: str) -> Unit | None:
    try:
        return parse_unit(text)
    except ValueError:
        return None


_known_unit = lru_cache(maxsize=64)(_unit)
"""Annotations of all pods of a node name few units."""


def parse_unit(text: str) -> Unit:
    """Raises ``ValueError`` for what is no unit."""
    if text == WHOLE_CARD.text:
        return WHOLE_CARD
    if match := _SLICE.fullmatch(text):
        return CardPart(ResourceClass.SLICE, int(match[1]))
    return MemoryUnit.parse(text)
