"""Which unit lies on which card, and of which class it is, by the status of a node."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from gpushare_core.audit.records import ShareNodeRecord, StatusCard
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.unit_range import unit_range
from gpushare_core.placement.units import NodeUnit


@dataclass(frozen=True, slots=True)
class Block:
    """The units of one class on one card: those from ``first`` up to ``stop``."""

    first: int
    stop: int
    card: str
    """UUID."""
    resource: ResourceClass


@dataclass(frozen=True, slots=True)
class UnitMap:
    """All units of a node."""

    blocks: tuple[Block, ...]
    """In the order of their units."""

    def block(self, number: int) -> Block | None:
        """Returns the block of a unit; None where no card has it."""
        before = bisect_right(self.blocks, number, key=attrgetter("first"))
        found = self.blocks[before - 1] if before else None
        return found if found and number < found.stop else None

    def shares(self, numbers: Sequence[int]) -> dict[Block, int]:
        """Returns how many of ``numbers`` (ascending) lie in each block, without those of no card."""
        return {block: len(found) for block, found in self.by_block(numbers).items()}

    def by_block(self, numbers: Sequence[int]) -> dict[Block, Sequence[int]]:
        """Returns which of ``numbers`` (ascending) lie in each block, without those of no card.

        A node can have hundreds of thousands of units; nearly always ``numbers`` lie in one block.
        """
        if not numbers:
            return {}
        lowest = self.block(numbers[0])
        if lowest and numbers[-1] < lowest.stop:
            return {lowest: numbers}
        found: dict[Block, list[int]] = {}
        for number in numbers:
            if block := self.block(number):
                found.setdefault(block, []).append(number)
        return {**found}

    def unknown(self, numbers: Sequence[int]) -> list[int]:
        if sum(self.shares(numbers).values()) == len(numbers):
            return []
        return [number for number in numbers if self.block(number) is None]


def unit_map(share_node: ShareNodeRecord | None) -> UnitMap | None:
    if share_node is None or share_node.unit is None:
        return None
    blocks = [block for card in share_node.cards for block in _blocks(card, share_node.unit)]
    return UnitMap(tuple(sorted(blocks, key=attrgetter("first"))))


def _blocks(card: StatusCard, unit: NodeUnit) -> list[Block]:
    """Returns a block for each class, one after another; each has room for the card's whole memory."""
    if card.first_unit is None:
        return []
    blocks, first = [], card.first_unit
    for part in unit.parts:
        stop = first + part.units_in(card.memory)
        if stop > first:
            blocks.append(Block(first, stop, card.uuid, part.resource))
        first = stop
    return blocks


def room(card: StatusCard, unit: NodeUnit, resource: ResourceClass | None, memory: int = 0) -> int:
    """Returns the units of ``resource`` in ``memory`` bytes, or in the whole memory of ``card``.

    Without a class: units of the class that the card serves now.
    """
    wanted = resource or card.lock or unit.parts[0].resource
    part = next((part for part in unit.parts if part.resource is wanted), None)
    return part.units_in(memory or card.memory) if part else 0


class UnitNumbers:
    """A set of unit numbers that holds hundreds of thousands: one byte for each number up to the highest.

    A set of Python's takes sixty bytes for each member.
    """

    def __init__(self) -> None:
        self._members = bytearray()

    def __len__(self) -> int:
        return self._members.count(1)

    def add(self, numbers: Sequence[int]) -> None:
        """Adds ``numbers``: ascending, distinct, from 0 to 2^18 - 1 as those of unit IDs."""
        if (missing := (numbers[-1] if numbers else -1) + 1 - len(self._members)) > 0:
            self._members.extend(bytes(missing))
        if (block := unit_range(numbers)) is not None:
            self._members[block.start : block.stop] = b"\1" * len(block)
            return
        for number in numbers:
            self._members[number] = 1

    def has_any(self, numbers: Sequence[int]) -> bool:
        """Whether one of ``numbers``, ascending and distinct, is a member."""
        if (block := unit_range(numbers)) is not None:
            return self._members.find(1, block.start, block.stop) >= 0
        end = len(self._members)
        return any(number < end and self._members[number] for number in numbers)
