"""Sums over a policy's nodes."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from gpushare_core.api import bounds
from gpushare_core.api.policy_status import CardTotals, NodeTotals, PolicyUnits
from gpushare_core.api.share_node import MemoryTotals
from gpushare_core.placement.quantity import format_memory, parse_memory
from gpushare_core.text.printable import printable
from gpushare_operator.cluster.objects import UNIT_SEPARATOR, ShareNodeObject
from gpushare_operator.status.versions import PluginVersion

USED_THRESHOLD = 0.02
"""Share of a policy's memory by which the memory in use has to change, or drop to 0, to be reported: of
thousands of nodes one changes every second."""

SHARING, READY = "nodes", "ready nodes"
CARDS, UNHEALTHY_CARDS, CLOSED_CARDS = "cards", "unhealthy cards", "unhealthy or cordoned cards"
UNITS, ALLOCATED_UNITS = "units", "allocated units"
MEMORY, ALLOCATED_MEMORY, USED_MEMORY = "memory", "allocated memory", "used memory"
"""Keys of the sums. Memory in bytes."""


@dataclass(frozen=True, slots=True)
class _NodesWithUnit:
    """Key of the number of nodes whose unit is, for example, ``1Gi``: a slice and a GiB are not the same."""

    unit: str


@dataclass(frozen=True, slots=True)
class _UnitsOfKind:
    """Key of the number of units of one kind."""

    unit: str
    is_allocated: bool


@dataclass(frozen=True, slots=True)
class Totals:
    nodes: NodeTotals
    cards: CardTotals
    units: PolicyUnits
    memory: MemoryTotals


def amounts_of(share: ShareNodeObject | None, *, is_ready: bool) -> Mapping[Hashable, int]:
    amounts: dict[Hashable, int] = {SHARING: 1, READY: int(is_ready)}
    if share is None:
        return amounts
    for kind, units in share.units_by_kind.items():
        amounts[_NodesWithUnit(kind)] = 1
        amounts[_UnitsOfKind(kind, is_allocated=False)] = units.total
        amounts[_UnitsOfKind(kind, is_allocated=True)] = units.allocated
    return {
        **amounts,
        PluginVersion(share.plugin_version): 1,
        CARDS: share.cards,
        UNHEALTHY_CARDS: share.unhealthy_cards,
        CLOSED_CARDS: len(share.closed_cards),
        UNITS: share.units.total,
        ALLOCATED_UNITS: share.units.allocated,
        MEMORY: byte_count(share.memory.total),
        ALLOCATED_MEMORY: byte_count(share.memory.allocated),
        USED_MEMORY: byte_count(share.memory.used),
    }


def totals(sums: Mapping[Hashable, int], unit: str) -> Totals:
    """Returns ``sums`` for a status; memory has the kind of suffix of ``unit``."""
    enabled, ready, cards = sums.get(SHARING, 0), sums.get(READY, 0), sums.get(CARDS, 0)
    return Totals(
        nodes=NodeTotals(enabled=enabled, ready=ready, summary=f"{ready}/{enabled}"),
        cards=CardTotals(
            total=cards,
            healthy=cards - sums.get(UNHEALTHY_CARDS, 0),
            summary=f"{cards - sums.get(CLOSED_CARDS, 0)}/{cards}",
        ),
        units=_units(sums),
        memory=MemoryTotals(
            total=format_memory(sums.get(MEMORY, 0), like=unit),
            allocated=format_memory(sums.get(ALLOCATED_MEMORY, 0), like=unit),
            used=format_memory(sums.get(USED_MEMORY, 0), like=unit),
        ),
    )


def _units(sums: Mapping[Hashable, int]) -> PolicyUnits:
    """Returns the sums of all units, and in words those of each kind."""
    kinds = sorted(key.unit for key in sums if isinstance(key, _NodesWithUnit))
    return PolicyUnits(
        total=sums.get(UNITS, 0),
        allocated=sums.get(ALLOCATED_UNITS, 0),
        unit=_shown(kinds),
        summary=_shown(_allocated_of_total(sums, kind) for kind in kinds),
    )


def _shown(parts: Iterable[str]) -> str:
    """A plugin may write anything as the name of its unit."""
    return printable(UNIT_SEPARATOR.join(parts), max_bytes=bounds.UNITS)


def _allocated_of_total(sums: Mapping[Hashable, int], kind: str) -> str:
    allocated = sums.get(_UnitsOfKind(kind, is_allocated=True), 0)
    return f"{allocated}/{sums.get(_UnitsOfKind(kind, is_allocated=False), 0)}"


def reported_memory(before: MemoryTotals, now: MemoryTotals) -> MemoryTotals:
    """Returns ``now``, with the memory in use of ``before``, the stored status, unless it has changed
    much."""
    was, used = byte_count(before.used), byte_count(now.used)
    is_far = abs(used - was) >= USED_THRESHOLD * byte_count(now.total)
    return now if is_far or not used else msgspec.structs.replace(now, used=before.used)


def byte_count(quantity: str) -> int:
    """Returns 0 for a quantity that cannot be read: it must not prevent the status."""
    try:
        return parse_memory(quantity)
    except ValueError:
        return 0
