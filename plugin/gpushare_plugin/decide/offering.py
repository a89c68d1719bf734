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
from gpushare_plugin.decide.layout import Layout, keep_places, lay_out, recorded_layout
from gpushare_plugin.decide.pods import Pods
from gpushare_plugin.decide.unit_change import (
    HeldUnit,
    held_units,
    most_annotated,
    parse_unit,
    unit_in_force,
)
from gpushare_plugin.decide.witnesses import (
    ContradictionError,
    Witness,
    agrees,
    annotated_witnesses,
    has_sizes,
    placed_cards,
    stored_witnesses,
    unwitnessed,
    witnessed_cards,
    witnessed_unit,
)
from gpushare_plugin.devices.card import PhysicalCard

LAYOUT_UNKNOWN = "LayoutUnknown"
"""Reason: units are in use and it cannot be told on which card they lie."""


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
    assigned_known: bool = True
    """Whether ``assigned`` was ever read."""
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
    left_out: tuple[PhysicalCard, ...] = ()
    """Cards for which the kubelet's message has no room; only with ``finest_unit``."""

    @property
    def layout_unknown(self) -> bool:
        """Whether nothing is offered because it cannot be told what units in use mean."""
        return self.problem is not None and self.problem.reason == LAYOUT_UNKNOWN


def decide_offering(snapshot: Snapshot) -> Offering:
    """Returns what the node offers from now on."""
    share_node = snapshot.share_node
    if share_node is None or share_node.spec.mode is Mode.OFF:
        return Offering()
    held = held_units(snapshot.pods, snapshot.assigned)
    if problem := _problem(share_node.spec):
        kept = _as_before(snapshot, share_node) if held else None
        return Offering(layout=kept, problem=problem, blocked_by=len(held) if kept else 0)
    try:
        return _offering(snapshot, share_node, held)
    except ContradictionError as error:
        return Offering(problem=Problem(LAYOUT_UNKNOWN, f"nothing is offered, for {error}"))


def _offering(snapshot: Snapshot, share_node: GPUShareNode, held: list[HeldUnit]) -> Offering:
    """Raises ``ContradictionError`` where it is not known what units in use mean."""
    desired = MemoryUnit.parse(share_node.spec.memory_unit)
    witnesses = stored_witnesses(snapshot.assigned)
    served = _recorded_unit(snapshot, share_node)
    if witnesses:
        served = witnessed_unit((served, most_annotated(held), desired), witnesses)
    in_force = unit_in_force(desired, served, held)
    present = snapshot.cards or ()
    layout = _layout(snapshot, present, in_force.unit, witnesses, held=bool(held))
    if fits(layout, limit=snapshot.limit):
        return Offering(layout=layout, blocked_by=in_force.blocked_by)
    reserved = _reserved(share_node.spec)
    cards = [placed.card for placed in layout.cards]
    last_good = _last_good(snapshot, served, witnesses, held=bool(held)) if served else None
    kept = last_good.places if last_good else {}
    return Offering(
        layout=last_good,
        finest_unit=finest_unit(cards, layout.unit, reserved=reserved, limit=snapshot.limit),
        desired_units=layout.units,
        left_out=tuple(card for card in present if card.uuid not in kept) if last_good else (),
    )


def _last_good(
    snapshot: Snapshot, unit: MemoryUnit, witnesses: Sequence[Witness], *, held: bool
) -> Layout | None:
    """Returns what worked before: ``unit`` with the cards that were offered, others as far as they fit."""
    known = known_layout(snapshot)
    before = {*(known.places if known else ()), *(witness.card for witness in witnesses)}
    chosen: list[PhysicalCard] = []
    last_good = None
    for card in sorted(snapshot.cards or (), key=lambda card: card.uuid not in before):
        layout = _layout(snapshot, [*chosen, card], unit, witnesses, held=held)
        if fits(layout, limit=snapshot.limit):
            chosen.append(card)
            last_good = layout
    return last_good


def _layout(
    snapshot: Snapshot,
    present: Sequence[PhysicalCard],
    unit: MemoryUnit,
    witnesses: Sequence[Witness],
    *,
    held: bool,
) -> Layout:
    """Returns the cards that are ``present``; those of which units are ``held`` as they were at that time.

    That is taken from the layout that was recorded, unless a witness contradicts it; then from the witnesses.

    Raises:
        ContradictionError: neither tells.
    """
    reserved = _reserved(snapshot.share_node.spec) if snapshot.share_node else 0
    known = known_layout(snapshot)
    if held and known and known.unit.size == unit.size and agrees(known, witnesses):
        cards = keep_places(present, _cards(known), held=True)
        return lay_out(cards, unit, reserved=reserved, places=known.places)
    if held:
        witnesses = [*witnesses, *_other_witnesses(snapshot)]
    found = lay_out(present, unit, reserved=reserved)
    if agrees(found, witnesses) and has_sizes(found, witnesses):
        return found
    placed = placed_cards(witnessed_cards(witnesses, present, unit), unit)
    cards = keep_places(present, [card for card, _ in placed], held=True)
    return lay_out(cards, unit, reserved=reserved, places={card.uuid: first for card, first in placed})


def _other_witnesses(snapshot: Snapshot) -> list[Witness]:
    """Returns what annotations witness, where no layout is recorded.

    Where one is, it says more: two pods may have got each other's card, and it takes a moment until their
    annotations are repaired.

    Raises:
        ContradictionError: it is not known which units are held, or some are of which nothing is witnessed.
    """
    if not snapshot.assigned_known:
        raise ContradictionError("it is not known which units pods hold until the kubelet answers")
    assigned, node = snapshot.assigned, snapshot.share_node
    witnesses = annotated_witnesses(assigned, snapshot.pods, node.metadata.name if node else "")
    if unknown := unwitnessed(assigned, [*stored_witnesses(assigned), *witnesses]):
        pods = ", ".join(unknown)
        raise ContradictionError(
            f"nothing says on which card the units of these pods lie: {pods}; delete them"
        )
    return witnesses


def _problem(spec: NodeSpec) -> Problem | None:
    """Returns what of ``spec`` this version cannot serve."""
    problem = mode_problem(spec.mode) or dialect_problem(spec.dialect) or source_problem(spec.devices.source)
    if problem is None and parse_unit(spec.memory_unit) is None:
        return Problem("InvalidUnit", f"memoryUnit {spec.memory_unit!r} is no size: use one such as 1Gi")
    return problem


def _as_before(snapshot: Snapshot, share_node: GPUShareNode) -> Layout | None:
    """What was offered while units are held, as far as the cards that are there now can serve it."""
    known = known_layout(snapshot)
    if known is None or not agrees(known, stored_witnesses(snapshot.assigned)):
        return None
    cards = _cards(known) if snapshot.cards is None else keep_places(snapshot.cards, _cards(known), held=True)
    return lay_out(cards, known.unit, reserved=_reserved(share_node.spec), places=known.places)


def _recorded_unit(snapshot: Snapshot, share_node: GPUShareNode) -> MemoryUnit | None:
    if snapshot.last_layout:
        return snapshot.last_layout.unit
    return parse_unit(share_node.status.memory_unit)


def known_layout(snapshot: Snapshot) -> Layout | None:
    """Returns what was offered last, also before the plugin was restarted."""
    if snapshot.last_layout or snapshot.share_node is None:
        return snapshot.last_layout
    return recorded_layout(snapshot.share_node.status)


def _cards(layout: Layout | None) -> Sequence[PhysicalCard]:
    return [placed.card for placed in layout.cards] if layout else ()


def _reserved(spec: NodeSpec) -> int:
    return parse_memory(spec.reserved_memory)
