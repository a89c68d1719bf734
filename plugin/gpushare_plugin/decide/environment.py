"""The environment of a container: a function of its units alone, so it gets the card that they lie on."""

from collections.abc import Sequence

from gpushare_core.books.dialects import Dialect
from gpushare_core.placement.quantity import MIB
from gpushare_plugin.decide.layout import Layout, PlacedCard
from gpushare_plugin.decide.unit_ids import UnknownUnitError, decode_id


class UnusableUnitsError(ValueError):
    """No container can be given these units; the text says why."""


def environment(ids: Sequence[str], layout: Layout, dialect: Dialect) -> dict[str, str]:
    """Returns the environment variables of a container that has the units ``ids``.

    Raises:
        UnusableUnitsError: the IDs are not of this node, or not all of one card.
    """
    numbers = [_number(unit_id, layout) for unit_id in ids]
    shares = layout.shares(numbers)
    if len(shares) != 1:
        chosen = ", ".join(f"{units} of {uuid}" for uuid, units in sorted(shares.items())) or "nothing"
        raise UnusableUnitsError(f"asked {len(ids)} units of one card, the kubelet chose {chosen}")
    placed = layout.card_of(numbers[0])
    assert placed
    return _variables(placed, len(ids), layout, dialect)


def _number(unit_id: str, layout: Layout) -> int:
    try:
        number = decode_id(unit_id)
    except UnknownUnitError as error:
        raise UnusableUnitsError(str(error)) from error
    if layout.card_of(number) is None:
        raise UnusableUnitsError(
            f"{unit_id!r} is a unit of no card of this node; it has {layout.units} units"
        )
    return number


def _variables(placed: PlacedCard, units: int, layout: Layout, dialect: Dialect) -> dict[str, str]:
    return {
        **dict.fromkeys(dialect.card_variables, placed.uuid),
        dialect.index_variable: str(placed.card.index),
        dialect.units_variable: str(units),
        dialect.memory_variable: str(units * layout.unit.size // MIB),
        dialect.card_memory_variable: str(placed.card.memory // MIB),
    }
