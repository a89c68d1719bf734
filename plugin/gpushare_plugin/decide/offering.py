"""What a node offers: decided from what is asked of it, what is there, and what pods hold."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_core.api.enums import Mode
from gpushare_core.api.served import Problem, dialect_problem, mode_problem, source_problem
from gpushare_core.api.share_node import GPUShareNode, NodeSpec
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.allocations import AssignedDevices
from gpushare_plugin.decide.device_list import MESSAGE_LIMIT, finest_unit, fits
from gpushare_plugin.decide.layout import Layout, keep_places, lay_out, recorded_cards
from gpushare_plugin.decide.pods import Pods
from gpushare_plugin.decide.unit_change import held_units, parse_unit, unit_in_force
from gpushare_plugin.devices.source import PhysicalCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that the decision is made from."""

    share_node: GPUShareNode | None
    """None when the node is not shared (any more)."""
    cards: Sequence[PhysicalCard] | None
    """None where the source is not known to this version."""
    last_layout: Layout | None
    """What was offered last; None after a start, when only what was recorded is known."""
    assigned: AssignedDevices
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
    """How many pods hold units that the desired change would alter."""
    finest_unit: MemoryUnit | None = None
    """Set where the desired unit is too fine: the finest that works."""
    desired_units: int = 0
    """Units that the desired memory unit would make; only with ``finest_unit``."""


def decide_offering(snapshot: Snapshot) -> Offering:
    """Returns what the node offers from now on."""
    share_node = snapshot.share_node
    if share_node is None or share_node.spec.mode is Mode.OFF:
        return Offering()
    held = held_units(snapshot.pods, snapshot.assigned)
    if problem := _problem(share_node.spec):
        kept = _as_before(snapshot, share_node) if held else None
        return Offering(layout=kept, problem=problem, blocked_by=len(held) if kept else 0)
    desired = MemoryUnit.parse(share_node.spec.memory_unit)
    in_force = unit_in_force(desired, _recorded_unit(snapshot, share_node), held)
    cards = keep_places(snapshot.cards or (), _known_cards(snapshot, share_node), held=bool(held))
    layout = lay_out(cards, in_force.unit, reserved=_reserved(share_node.spec))
    if fits(layout, limit=snapshot.limit):
        return Offering(layout=layout, blocked_by=in_force.blocked_by)
    return _too_fine(snapshot, share_node, layout)


def _problem(spec: NodeSpec) -> Problem | None:
    """Returns what of ``spec`` this version cannot serve."""
    problem = mode_problem(spec.mode) or dialect_problem(spec.dialect) or source_problem(spec.devices.source)
    if problem is None and parse_unit(spec.memory_unit) is None:
        return Problem("InvalidUnit", f"memoryUnit {spec.memory_unit!r} is no size: use one such as 1Gi")
    return problem


def _too_fine(snapshot: Snapshot, share_node: GPUShareNode, desired: Layout) -> Offering:
    """Goes on with the unit that worked before, if any."""
    cards = [placed.card for placed in desired.cards]
    reserved = _reserved(share_node.spec)
    unit = _recorded_unit(snapshot, share_node)
    before = lay_out(cards, unit, reserved=reserved) if unit else None
    return Offering(
        layout=before if before and fits(before, limit=snapshot.limit) else None,
        finest_unit=finest_unit(cards, desired.unit, reserved=reserved, limit=snapshot.limit),
        desired_units=desired.units,
    )


def _as_before(snapshot: Snapshot, share_node: GPUShareNode) -> Layout | None:
    """What was offered while units are held, as far as the cards that are there now can serve it."""
    unit, known = _recorded_unit(snapshot, share_node), _known_cards(snapshot, share_node)
    if unit is None or not known:
        return None
    cards = known if snapshot.cards is None else keep_places(snapshot.cards, known, held=True)
    return lay_out(cards, unit, reserved=_reserved(share_node.spec))


def _recorded_unit(snapshot: Snapshot, share_node: GPUShareNode) -> MemoryUnit | None:
    if snapshot.last_layout:
        return snapshot.last_layout.unit
    return parse_unit(share_node.status.memory_unit)


def _known_cards(snapshot: Snapshot, share_node: GPUShareNode) -> Sequence[PhysicalCard]:
    if snapshot.last_layout:
        return tuple(placed.card for placed in snapshot.last_layout.cards)
    return recorded_cards(share_node.status.cards)


def _reserved(spec: NodeSpec) -> int:
    return parse_memory(spec.reserved_memory)
