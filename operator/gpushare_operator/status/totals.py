"""Sums over a policy's nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpushare_core.api.names import REGISTERED
from gpushare_core.api.policy import CardTotals, MemoryTotals, NodeTotals, UnitTotals
from gpushare_core.placement.quantity import format_quantity, parse_quantity
from gpushare_operator.cluster.objects import NodeView, ShareNodeView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.nodes import Assignment


@dataclass(frozen=True, slots=True)
class Totals:
    nodes: NodeTotals
    cards: CardTotals
    units: UnitTotals
    memory: MemoryTotals


def sum_up(snapshot: Snapshot, assignment: Assignment, unit: str) -> Totals:
    """Memory is written in the family of suffixes of ``unit``."""
    shares = [snapshot.share_nodes[name] for name in assignment.enabled if name in snapshot.share_nodes]
    ready = sum(is_ready(snapshot, name) for name in assignment.enabled)
    cards = sum(share.cards for share in shares)
    return Totals(
        nodes=NodeTotals(
            enabled=len(assignment.enabled), ready=ready, summary=f"{ready}/{len(assignment.enabled)}"
        ),
        cards=CardTotals(total=cards, healthy=cards - sum(share.unhealthy for share in shares)),
        units=UnitTotals(
            total=sum(share.units[0] for share in shares), allocated=sum(share.units[1] for share in shares)
        ),
        memory=_memory(shares, unit),
    )


def is_ready(snapshot: Snapshot, name: str) -> bool:
    """Whether the plugin on node ``name`` offers what the policy's present generation asks for."""
    return not why_not_ready(snapshot.nodes.get(name), snapshot.share_nodes.get(name))


def why_not_ready(node: NodeView | None, share: ShareNodeView | None) -> str:
    """Empty when the node is ready."""
    if node is None or not node.ready:
        return "the node itself is not Ready"
    if share is None:
        return "its GPUShareNode is being made"
    registered = share.conditions.get(REGISTERED)
    if registered is None or share.observed_generation != share.generation:
        return "its plugin has not answered yet"
    return "" if registered.status == "True" else f"{registered.reason}: {registered.message}"


def _memory(shares: Sequence[ShareNodeView], unit: str) -> MemoryTotals:
    columns = [[share.memory[column] for share in shares] for column in range(3)]
    total, allocated, used = (format_quantity(_sum(column), like=unit) for column in columns)
    return MemoryTotals(total=total, allocated=allocated, used=used)


def _sum(quantities: Iterable[str]) -> int:
    return sum(_bytes(quantity) for quantity in quantities)


def _bytes(quantity: str) -> int:
    """A quantity that cannot be read counts as nothing: a status is not worth failing for."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return 0
