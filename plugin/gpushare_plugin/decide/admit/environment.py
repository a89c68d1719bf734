"""The environment of a container: a function of its units alone, so it gets the cards that they lie on."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import CardGrant, ContainerGrant
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.unit_ids import UnknownUnitError, decode_id


@dataclass(frozen=True, slots=True)
class ContainerUnits:
    """``units`` of each of the cards, in a layout of their class alone."""

    cards: tuple[PlacedCard, ...]
    units: int
    layout: Layout


def container_units(ids: Sequence[str], layout: Layout) -> ContainerUnits:
    """Returns what the units ``ids`` are.

    Raises:
        UnusableUnitsError: the IDs are not of this node, or do not lie on cards as the mode has it.
    """
    numbers = sorted(_number(unit_id, layout) for unit_id in ids)
    resource = _class_of(numbers, layout)
    layout = layout.of(resource)
    shares, asked = layout.shares(numbers), mode_serving(resource).on_cards(len(ids))
    if len(shares) != max(1, asked.cards) or any(units != asked.units for units in shares.values()):
        chosen = ", ".join(f"{units} of {uuid}" for uuid, units in sorted(shares.items())) or "nothing"
        where = "as many cards" if asked.cards > 1 else "one card"
        raise UnusableUnitsError(f"asked {len(ids)} units of {where}, the kubelet chose {chosen}")
    cards = tuple(placed for placed in layout.cards if placed.uuid in shares)
    return ContainerUnits(cards, asked.units, layout)


def environment(ids: Sequence[str], layout: Layout, dialect: Dialect) -> dict[str, str]:
    """Returns the environment variables of a container that has the units ``ids``.

    Raises:
        UnusableUnitsError: as ``container_units``.
    """
    return variables_of(container_units(ids, layout), dialect)


def variables_of(granted: ContainerUnits, dialect: Dialect) -> dict[str, str]:
    return dialect.environment(_grant(granted.cards, granted.units, granted.layout))


def _class_of(numbers: Sequence[int], layout: Layout) -> ResourceClass:
    """Returns that of the lowest; of a layout of one class units of another lie on no card."""
    return (layout.class_of(numbers[0]) if numbers else None) or layout.classes[0]


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


def _grant(cards: Sequence[PlacedCard], units: int, layout: Layout) -> ContainerGrant:
    """``units`` are those of each card. Nobody says which pod it is: it has what this container has."""
    return ContainerGrant(
        resource=layout.only.resource,
        unit=layout.only.text,
        pod_units=units * len(cards),
        cards=tuple(
            CardGrant(
                uuid=placed.uuid,
                index=placed.card.index,
                units=units,
                memory=layout.memory_of(units, placed),
                card_units=placed.units,
                card_memory=placed.card.memory,
            )
            for placed in cards
        ),
    )
