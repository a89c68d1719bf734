"""What a node offers: decided from what is asked of it, what is there, and what pods hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_core.api.policy import Mode
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode, NodeSpec
from gpushare_core.placement.quantity import parse_quantity
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.device_list import MESSAGE_LIMIT, finest_unit, fits
from gpushare_plugin.decide.effective import find_holders, parse_unit, unit_in_force, unsupported
from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.decide.layout import Layout, lay_out, recorded_cards, settle
from gpushare_plugin.decide.pods import Pods
from gpushare_plugin.devices.cards import PhysicalCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the decision is made from."""

    node: GPUShareNode | None
    """None when the node is not shared (any more)."""
    found: Sequence[PhysicalCard] | None
    """None where the source is not known to this version."""
    last: Layout | None
    """What was offered last; None after a start, when only what was recorded is known."""
    books: Books
    pods: Pods
    limit: int = MESSAGE_LIMIT
    """Bytes of a list of devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """The decision. Without ``layout`` nothing is offered."""

    layout: Layout | None = None
    problem: Problem | None = None
    """What this version cannot serve."""
    blocked_by: int = 0
    """Pods that hold units which the wanted change would alter."""
    finest: MemoryUnit | None = None
    """Set where the wanted unit is too fine: the finest that works."""
    wanted_units: int = 0
    """Units that the wanted unit would make; only with ``finest``."""


def decide_offering(snapshot: Snapshot) -> Offering:
    node = snapshot.node
    if node is None or node.spec.mode is Mode.OFF:
        return Offering()
    holders = find_holders(snapshot.pods, snapshot.books)
    if problem := unsupported(node.spec):
        kept = _as_before(snapshot, node) if holders else None
        return Offering(layout=kept, problem=problem, blocked_by=len(holders) if kept else 0)
    wanted = MemoryUnit.parse(node.spec.memory_unit)
    force = unit_in_force(wanted, _recorded_unit(snapshot, node), holders)
    cards = settle(snapshot.found or (), _known_cards(snapshot, node), held=bool(holders))
    layout = lay_out(cards, force.unit, reserved=_reserved(node.spec))
    if fits(layout, limit=snapshot.limit):
        return Offering(layout=layout, blocked_by=force.blocked_by)
    return _too_fine(snapshot, node, layout)


def _too_fine(snapshot: Snapshot, node: GPUShareNode, wanted: Layout) -> Offering:
    """Go on with the unit that worked before, if any."""
    cards = [placed.card for placed in wanted.cards]
    reserved = _reserved(node.spec)
    unit = _recorded_unit(snapshot, node)
    before = lay_out(cards, unit, reserved=reserved) if unit else None
    return Offering(
        layout=before if before and fits(before, limit=snapshot.limit) else None,
        finest=finest_unit(cards, wanted.unit, reserved=reserved, limit=snapshot.limit),
        wanted_units=wanted.units,
    )


def _as_before(snapshot: Snapshot, node: GPUShareNode) -> Layout | None:
    """What was offered while units are held, as far as the cards that are there now can serve it."""
    unit, known = _recorded_unit(snapshot, node), _known_cards(snapshot, node)
    if unit is None or not known:
        return None
    cards = known if snapshot.found is None else settle(snapshot.found, known, held=True)
    return lay_out(cards, unit, reserved=_reserved(node.spec))


def _recorded_unit(snapshot: Snapshot, node: GPUShareNode) -> MemoryUnit | None:
    if snapshot.last:
        return snapshot.last.unit
    return parse_unit(node.status.memory_unit)


def _known_cards(snapshot: Snapshot, node: GPUShareNode) -> Sequence[PhysicalCard]:
    if snapshot.last:
        return tuple(placed.card for placed in snapshot.last.cards)
    return recorded_cards(node.status.cards)


def _reserved(spec: NodeSpec) -> int:
    return parse_quantity(spec.reserved_memory)
