"""What a container gets with its units: variables, device nodes, mounts, names for the container runtime."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gpushare_core.api.enums import Injection
from gpushare_core.api.share_node import Devices
from gpushare_core.dialects.dialect import CARD_VARIABLE, Dialect
from gpushare_core.dialects.grants import CardGrant, ContainerGrant
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.isolation.kind import CardLimit, GrantedMemory, IsolationChoice
from gpushare_plugin.decide.isolation.table import NO_ISOLATION
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.unit_ids import UnknownUnitError, decode_id
from gpushare_plugin.devices.card import DeviceNode, Equipment, HostMount, PhysicalCard

HIDDEN = "void"
"""In NVIDIA's variable: its runtime adds no card by itself, whatever the container's image asks for.

Source: NVIDIA's container toolkit.
"""
_NOTHING = Equipment()

_Part = TypeVar("_Part", DeviceNode, HostMount)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerAnswer:
    """The answer to Allocate for one container."""

    variables: dict[str, str] = field(default_factory=dict)
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    """Qualified names."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path on the node -> content: what has to be there before the kubelet is answered."""


def container_answer(
    ids: Sequence[str],
    layout: Layout,
    dialect: Dialect,
    devices: Devices,
    isolation: IsolationChoice = NO_ISOLATION,
) -> ContainerAnswer:
    """Returns what a container with the units ``ids`` gets of their cards alone, injected as ``devices``
    says, and what keeps it to the memory of these units.

    Raises ``UnusableUnitsError`` where the IDs are not of this node, do not lie on cards as the mode has it,
    or what the inventory gives with their cards cannot be in one container.
    """
    placed, grant = _granted(ids, layout)
    answer = _injected([one.card for one in placed], dialect.environment(grant), dialect, devices)
    if grant.resource is ResourceClass.CARD and not layout.reserved:
        return answer  # a limit as large as the card limits nothing
    return _isolated(answer, ids, grant, isolation)


def _isolated(
    answer: ContainerAnswer, ids: Sequence[str], grant: ContainerGrant, isolation: IsolationChoice
) -> ContainerAnswer:
    granted = GrantedMemory(
        numbers=array("I", sorted(map(decode_id, ids))),
        limits=tuple(CardLimit(uuid=card.uuid, memory=card.memory) for card in grant.cards),
        context_memory=isolation.context_memory,
        folder=isolation.folder,
    )
    equipment = isolation.kind.equipment(granted)
    return replace(
        answer,
        variables={**answer.variables, **equipment.variables},
        mounts=_distinct([*answer.mounts, *equipment.mounts]),
        files=equipment.files,
    )


def _injected(
    cards: Sequence[PhysicalCard], variables: dict[str, str], dialect: Dialect, devices: Devices
) -> ContainerAnswer:
    if devices.injection is Injection.CDI:
        return _by_cdi(cards, variables, dialect, devices.cdi_kind)
    if not any(card.equipment for card in cards):
        return ContainerAnswer(variables=variables)
    return _by_inventory(cards, variables, dialect)


def _granted(ids: Sequence[str], layout: Layout) -> tuple[Sequence[PlacedCard], ContainerGrant]:
    """Returns the cards of the units ``ids``, and what the container is told. Nobody says which pod it is: it
    has what this container has."""
    numbers = sorted(_number(unit_id, layout) for unit_id in ids)
    # The class is that of the lowest: in a layout of one class units of another lie on no card.
    resource = (layout.class_of(numbers[0]) if numbers else None) or layout.classes[0]
    layout = layout.of(resource)
    shares, asked = layout.shares(numbers), mode_serving(resource).on_cards(len(ids))
    if len(shares) != max(1, asked.cards) or any(units != asked.units for units in shares.values()):
        chosen = ", ".join(f"{units} of {uuid}" for uuid, units in sorted(shares.items())) or "nothing"
        where = "as many cards" if asked.cards > 1 else "one card"
        raise UnusableUnitsError(f"asked {len(ids)} units of {where}, the kubelet chose {chosen}")
    cards = [placed for placed in layout.cards if placed.uuid in shares]
    return cards, ContainerGrant(
        resource=resource,
        unit=layout.only.text,
        pod_units=len(ids),
        cards=tuple(
            CardGrant(
                uuid=placed.uuid,
                index=placed.card.index,
                units=asked.units,
                memory=layout.memory_of(asked.units, placed),
                card_units=placed.units,
                card_memory=placed.card.memory,
            )
            for placed in cards
        ),
    )


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


def _by_cdi(
    cards: Sequence[PhysicalCard], variables: dict[str, str], dialect: Dialect, kind: str
) -> ContainerAnswer:
    """Device nodes and mounts come from the node's CDI specification: there the runtime reads them."""
    hidden = dict.fromkeys(_runtime_variables(dialect), HIDDEN)
    own = dict(pair for card in cards for pair in _equipment(card).variables)
    names = (
        f"{_equipment(card).cdi_kind or kind}={_equipment(card).cdi_name or card.uuid}" for card in cards
    )
    return ContainerAnswer(variables={**own, **variables, **hidden}, cdi_devices=tuple(names))


def _by_inventory(
    cards: Sequence[PhysicalCard], variables: dict[str, str], dialect: Dialect
) -> ContainerAnswer:
    """The vendor's runtime has a variable of its own, or none; NVIDIA's has nothing to do here."""
    equipment = [_equipment(card) for card in cards]
    nvidia = _runtime_variables(dialect)
    named = {item.runtime_variable: "" for item in equipment if item.runtime_variable}
    listed = {
        name: ",".join(item.runtime_name for item in equipment if item.runtime_variable == name)
        for name in named
    }
    own = dict(pair for item in equipment for pair in item.variables)
    kept = {name: value for name, value in variables.items() if name not in nvidia}
    return ContainerAnswer(
        variables={**own, **kept, **listed},
        device_nodes=_distinct([node for item in equipment for node in item.device_nodes]),
        mounts=_distinct([mount for item in equipment for mount in item.mounts]),
    )


def _equipment(card: PhysicalCard) -> Equipment:
    return card.equipment or _NOTHING


def _runtime_variables(dialect: Dialect) -> list[str]:
    """Returns the variables by which a container runtime finds cards, not a workload or ourselves."""
    return [name for name in dialect.card_variables if name != CARD_VARIABLE]


def _distinct(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    """Returns each part once. Raises ``UnusableUnitsError`` where two want the same place in it."""
    placed: dict[str, _Part] = {}
    for part in parts:
        if placed.setdefault(part.container_path, part) != part:
            raise UnusableUnitsError(
                f"two of the container's cards, or a card and its isolation, come with different things at"
                f" {part.container_path}: give them different containerPaths in the node's inventory"
            )
    return tuple(placed.values())
