"""Sums over a policy's nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpushare_core.api.policy import CardTotals, MemoryTotals, NodeTotals, PolicyUnits
from gpushare_core.placement.quantity import format_memory, parse_memory
from gpushare_operator.cluster.objects import ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.node_assignment import Assignment
from gpushare_operator.status.node_readiness import why_not_ready


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
    by_unit: dict[str, list[ShareNodeObject]] = {}
    for share in shares:
        if share.unit:
            by_unit.setdefault(share.unit, []).append(share)
    kinds = sorted(by_unit)
    return PolicyUnits(
        total=sum(share.units.total for share in shares),
        allocated=sum(share.units.allocated for share in shares),
        unit=", ".join(kinds),
        summary=", ".join(_allocated_of_total(by_unit[kind]) for kind in kinds),
    )


def _allocated_of_total(shares: Sequence[ShareNodeObject]) -> str:
    allocated = sum(share.units.allocated for share in shares)
    return f"{allocated}/{sum(share.units.total for share in shares)}"


def _memory(quantities: Iterable[str], unit: str) -> str:
    return format_memory(sum(_bytes(quantity) for quantity in quantities), like=unit)


def _bytes(quantity: str) -> int:
    """Returns 0 for a quantity that cannot be read: a status is not worth failing for."""
    try:
        return parse_memory(quantity)
    except ValueError:
        return 0
