"""What a container gets with its units: variables, device nodes, mounts, names for the container runtime."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from gpushare_core.api.enums import Injection
from gpushare_core.api.share_node import Devices
from gpushare_core.dialects.dialect import CARD_VARIABLE, Dialect
from gpushare_plugin.decide.admit.environment import container_units, variables_of
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout
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


def container_answer(
    ids: Sequence[str], layout: Layout, dialect: Dialect, devices: Devices
) -> ContainerAnswer:
    """Returns what a container gets that has the units ``ids``: of their cards alone, injected as ``devices``
    says.

    Raises:
        UnusableUnitsError: the IDs are not of this node, do not lie on cards as the mode has it, or what the
            inventory gives with their cards cannot be in one container.
    """
    granted = container_units(ids, layout)
    cards, variables = [placed.card for placed in granted.cards], variables_of(granted, dialect)
    if devices.injection is Injection.CDI:
        return _by_cdi(cards, variables, dialect, devices.cdi_kind)
    if not any(card.equipment for card in cards):
        return ContainerAnswer(variables=variables)
    return _by_inventory(cards, variables, dialect)


def _by_cdi(
    cards: Sequence[PhysicalCard], variables: dict[str, str], dialect: Dialect, kind: str
) -> ContainerAnswer:
    """Device nodes and mounts are the node's CDI specification's to say: from there the runtime has them."""
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
    named = {each.runtime_variable: "" for each in equipment if each.runtime_variable}
    listed = {
        name: ",".join(each.runtime_name for each in equipment if each.runtime_variable == name)
        for name in named
    }
    own = dict(pair for each in equipment for pair in each.variables)
    kept = {name: value for name, value in variables.items() if name not in nvidia}
    return ContainerAnswer(
        variables={**own, **kept, **listed},
        device_nodes=_distinct([node for each in equipment for node in each.device_nodes]),
        mounts=_distinct([mount for each in equipment for mount in each.mounts]),
    )


def _equipment(card: PhysicalCard) -> Equipment:
    return card.equipment or _NOTHING


def _runtime_variables(dialect: Dialect) -> list[str]:
    """Returns the variables by which a container runtime finds cards, not a workload or ourselves."""
    return [name for name in dialect.card_variables if name != CARD_VARIABLE]


def _distinct(parts: Iterable[_Part]) -> tuple[_Part, ...]:
    """Returns each once. Raises ``UnusableUnitsError`` where two want the same place in the container."""
    placed: dict[str, _Part] = {}
    for part in parts:
        if placed.setdefault(part.container_path, part) != part:
            raise UnusableUnitsError(
                f"two of the container's cards come with different things at {part.container_path}: give them"
                " different containerPaths in the node's inventory"
            )
    return tuple(placed.values())
