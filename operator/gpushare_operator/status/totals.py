"""Sums over a policy's nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpushare_core.api.policy import CardTotals, MemoryTotals, NodeTotals, PolicyUnits, UnitTotals
from gpushare_core.placement.quantity import format_memory, parse_memory
from gpushare_operator.cluster.objects import UNIT_SEPARATOR, ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.node_assignment import Assignment
from gpushare_operator.status.node_readiness import why_not_ready

USED_THRESHOLD = 0.02
"""Of the memory that a policy shares: as far what is in use has to move, or to nothing. Each node writes by
itself; of thousands of nodes one moves every second."""


@dataclass(frozen=True, slots=True)
class Totals:
    nodes: NodeTotals
    cards: CardTotals
    units: PolicyUnits
    memory: MemoryTotals


def sum_up(snapshot: Snapshot, assignment: Assignment, unit: str) -> Totals:
    """Returns the sums; memory is written in the family of suffixes of ``unit``."""
    enabled = assignment.sharing
    shares = [snapshot.share_nodes[name] for name in enabled if name in snapshot.share_nodes]
    ready = sum(not why_not_ready(snapshot, name) for name in enabled)
    return Totals(
        nodes=NodeTotals(enabled=len(enabled), ready=ready, summary=f"{ready}/{len(enabled)}"),
        cards=_cards(shares),
        units=_units(shares),
        memory=MemoryTotals(
            total=_memory((share.memory.total for share in shares), unit),
            allocated=_memory((share.memory.allocated for share in shares), unit),
            used=_memory((share.memory.used for share in shares), unit),
        ),
    )


def _cards(shares: Sequence[ShareNodeObject]) -> CardTotals:
    total = sum(share.cards for share in shares)
    return CardTotals(total=total, healthy=total - sum(share.unhealthy_cards for share in shares))


def _units(shares: Sequence[ShareNodeObject]) -> PolicyUnits:
    """Returns the sums, and in words those of each kind of unit: a slice and a GiB are not the same."""
    by_kind: dict[str, list[UnitTotals]] = {}
    for share in shares:
        for kind, units in share.units_by_kind.items():
            by_kind.setdefault(kind, []).append(units)
    kinds = sorted(by_kind)
    return PolicyUnits(
        total=sum(share.units.total for share in shares),
        allocated=sum(share.units.allocated for share in shares),
        unit=UNIT_SEPARATOR.join(kinds),
        summary=UNIT_SEPARATOR.join(_allocated_of_total(by_kind[kind]) for kind in kinds),
    )


def _allocated_of_total(units: Sequence[UnitTotals]) -> str:
    return f"{sum(each.allocated for each in units)}/{sum(each.total for each in units)}"


def _memory(quantities: Iterable[str], unit: str) -> str:
    return format_memory(sum(byte_count(quantity) for quantity in quantities), like=unit)


def reported_memory(before: MemoryTotals, now: MemoryTotals) -> MemoryTotals:
    """Returns ``now``; what is in use as in ``before``, the stored status, unless it has moved far."""
    was, used = byte_count(before.used), byte_count(now.used)
    is_far = abs(used - was) >= USED_THRESHOLD * byte_count(now.total)
    return now if is_far or not used else now.model_copy(update={"used": before.used})


def byte_count(quantity: str) -> int:
    """Returns 0 for a quantity that cannot be read: a status is not worth failing for."""
    try:
        return parse_memory(quantity)
    except ValueError:
        return 0
