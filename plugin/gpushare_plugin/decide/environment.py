"""The environment of a container: a function of its units alone, so it gets the cards that they lie on."""

from collections.abc import Sequence

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.modes import mode_serving
from gpushare_core.placement.quantity import MIB
from gpushare_plugin.decide.layout import Layout, PlacedCard
from gpushare_plugin.decide.unit_ids import UnknownUnitError, decode_id


class UnusableUnitsError(ValueError):
    """No container can be given these units; the text says why."""


def environment(ids: Sequence[str], layout: Layout, dialect: Dialect) -> dict[str, str]:
    """Returns the environment variables of a container that has the units ``ids``.

    Raises:
        UnusableUnitsError: the IDs are not of this node, or do not lie on cards as the mode has it.
    """
    numbers = sorted(_number(unit_id, layout) for unit_id in ids)
    shares, asked = layout.shares(numbers), mode_serving(layout.unit.resource).on_cards(len(ids))
    if len(shares) != max(1, asked.cards) or any(units != asked.units for units in shares.values()):
        chosen = ", ".join(f"{units} of {uuid}" for uuid, units in sorted(shares.items())) or "nothing"
        where = "as many cards" if asked.cards > 1 else "one card"
        raise UnusableUnitsError(f"asked {len(ids)} units of {where}, the kubelet chose {chosen}")
    cards = [placed for placed in layout.cards if placed.uuid in shares]
    return _variables(cards, asked.units, layout, dialect)


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


def _variables(cards: Sequence[PlacedCard], units: int, layout: Layout, dialect: Dialect) -> dict[str, str]:
    """``units`` are those of each card. What concerns a card is a list, in the order of the units."""
    shares = [layout.unit.memory_of(units, placed.card.memory) for placed in cards]
    return {
        **dict.fromkeys(dialect.card_variables, ",".join(placed.uuid for placed in cards)),
        dialect.index_variable: ",".join(str(placed.card.index) for placed in cards),
        dialect.units_variable: str(units * len(cards)),
        dialect.memory_variable: ",".join(str(share // MIB) for share in shares),
        dialect.card_memory_variable: ",".join(str(placed.card.memory // MIB) for placed in cards),
    }
