"""What a node offers: decided from what is asked of it, what is there, and what pods hold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpushare_core.api.enums import Mode, UnitChange
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode, NodeSpec
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.modes.table import NODE_MODES, unit_to_come
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import (
    MemoryUnit,
    NodeUnit,
    UnitFields,
    parse_node_unit,
    part_of,
    readable_unit,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pods
from gpushare_plugin.decide.offer.device_list import MESSAGE_LIMIT, finest_unit, fits
from gpushare_plugin.decide.offer.dialect_change import dialect_in_force, recorded_dialect
from gpushare_plugin.decide.offer.granted_units import (
    ContradictionError,
    GrantedUnits,
    agrees,
    annotated_granted_units,
    contradicting,
    granted_cards,
    granted_unit,
    has_sizes,
    placed_cards,
    pods_without_evidence,
    stored_granted_units,
    with_reported_parts,
)
from gpushare_plugin.decide.offer.replaced_plugin_units import (
    NO_REPLACED_PLUGIN,
    DevicesOfReplacedPlugin,
    devices_of_replaced_plugin,
)
from gpushare_plugin.decide.offer.unit_change import (
    HeldUnit,
    held_units,
    most_annotated,
    unit_in_force,
)
from gpushare_plugin.decide.units.layout import Layout, keep_places, lay_out, recorded_layout
from gpushare_plugin.devices.card import PhysicalCard

LAYOUT_UNKNOWN = "LayoutUnknown"
"""Reason: units are in use and it cannot be told on which card they lie."""
STARTING = Problem(
    "Starting", "the plugin has just started, and waits for the API server to list this node's pods"
)
POD_RESOURCES_UNAVAILABLE = Problem(
    "PodResourcesUnreachable",
    "which units pods hold is not known until the kubelet's PodResources answer: is the kubelet running, and"
    " is its folder pod-resources mounted?",
)
NOT_RECORDED = Problem(
    "LayoutNotRecorded",
    "what unit IDs mean could not be written to the status of this GPUShareNode: see the plugin's log",
)
NOT_KEPT = Problem(
    "LayoutNotRecorded",
    "the API server does not keep what unit IDs mean, such as status.cards[].firstUnit of this GPUShareNode:"
    " apply the CRDs of this version",
)


class NotShownError(ContradictionError):
    """The kubelet has not listed yet which units pods hold."""


def unreadable(fields: str) -> Problem:
    """Returns what is wrong where ``fields`` of the GPUShareNode mean nothing to this version."""
    return Problem(
        "SpecUnreadable",
        f"this version of the plugin cannot read this GPUShareNode: {fields}; run the plugin in the version"
        " of the operator",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    """All that the decision is made from."""

    share_node: GPUShareNode | None
    """None when the node is not shared (any more)."""
    cards: Sequence[PhysicalCard] | None
    """None where nothing is to be shared."""
    last_layout: Layout | None
    """What was offered last; None after a start, when only what was recorded is known."""
    last_dialect: Dialect | None = None
    """In whose names that was."""
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
    dialect: Dialect = GPUSHARE
    """Names the resources as which the units are offered."""
    renaming_blocked_by: tuple[str, ...] = ()
    """The pods that hold units by the names of ``dialect`` while another one is asked for, for people."""
    devices_of_replaced_plugin: DevicesOfReplacedPlugin = NO_REPLACED_PLUGIN
    """Foreign units in the lists that the kubelet gets."""
    problem: Problem | None = None
    """What this version cannot serve."""
    postponed: Problem | None = None
    """Why what is asked for is not offered yet; ``layout`` is what was offered before, if anything was."""
    blocked_by: tuple[str, ...] = ()
    """The pods that hold units which the desired change would alter, for people."""
    finest_unit: MemoryUnit | None = None
    """Set where a unit is too fine: the finest that works."""
    refused_unit: NodeUnit | None = None
    """Which one is too fine; only with ``finest_unit``."""
    desired_units: int = 0
    """Units that it would make; only with ``finest_unit``."""
    left_out: tuple[PhysicalCard, ...] = ()
    """Cards for which the kubelet's message has no room; only with ``finest_unit``."""

    @property
    def lists(self) -> tuple[Layout | None, Dialect, DevicesOfReplacedPlugin]:
        """What the kubelet's lists follow from."""
        return self.layout, self.dialect, self.devices_of_replaced_plugin

    @property
    def layout_unknown(self) -> bool:
        """Whether nothing is offered because it cannot be told what units in use mean, or written down.

        Then what is recorded has to stay, and nothing is derived from it.
        """
        return self.layout is None and self.postponed is not None

    def refuses(self, unit: NodeUnit) -> bool:
        """Whether ``unit`` is too fine: it does not come into force, whichever pods end."""
        return self.refused_unit is not None and self.refused_unit.meanings == unit.meanings


def decide_offering(snapshot: NodeSnapshot) -> Offering:
    offering = _decide(snapshot)
    if snapshot.share_node is None or offering.layout is None:
        return offering
    desired = DIALECTS[snapshot.share_node.spec.dialect]
    served = known_dialect(snapshot)
    dialect, blocked_by = dialect_in_force(desired, served, snapshot.pods, snapshot.assigned)
    return replace(
        offering,
        dialect=dialect,
        renaming_blocked_by=blocked_by,
        devices_of_replaced_plugin=devices_of_replaced_plugin(offering.layout, dialect, snapshot.assigned),
    )


def _decide(snapshot: NodeSnapshot) -> Offering:
    share_node = snapshot.share_node
    if share_node is None or share_node.spec.mode is Mode.OFF:
        return Offering()
    held = held_units(snapshot.pods, snapshot.assigned)
    try:
        if problem := _problem(share_node.spec):
            kept = _as_before(snapshot, share_node) if held else None
            holders = tuple(sorted(pod.pod for pod in held)) if kept else ()
            return Offering(layout=kept, problem=problem, blocked_by=holders)
        return _offering(snapshot, share_node, held)
    except NotShownError:
        return Offering(postponed=POD_RESOURCES_UNAVAILABLE)
    except ContradictionError as error:
        return Offering(postponed=Problem(LAYOUT_UNKNOWN, str(error)))


def is_draining(spec: NodeSpec, offering: Offering) -> bool:
    """Whether no new pod gets units because another unit is to come: an amount means one size everywhere."""
    if offering.layout is None or spec.unit_change is UnitChange.KEEP:
        return False
    fields = UnitFields(spec.memory_unit, spec.slices_per_card)
    coming = unit_to_come(spec.mode, fields, offering.layout.unit.text)
    return coming is not None and not offering.refuses(coming)


def postponed(before: Offering, problem: Problem, *, cards: Sequence[PhysicalCard] | None = None) -> Offering:
    """Returns what is offered while ``problem`` keeps the next offering from being made: the same units, on
    the ``cards`` as they are now. None: as they were."""
    if before.layout is None:
        return Offering(postponed=problem)
    layout = before.layout if cards is None else before.layout.on(cards)
    return replace(before, layout=layout, postponed=problem)


def without_cards(before: Offering, problem: Problem) -> Offering:
    """Returns what is offered while a source will never tell of any card. The cards stay those of another
    source, which the policy does not ask for any more: for the pods that hold units, and for no new ones."""
    if before.layout:
        before = replace(before, layout=before.layout.stopped(problem.message))
    return postponed(before, problem)


def _offering(snapshot: NodeSnapshot, share_node: GPUShareNode, held: list[HeldUnit]) -> Offering:
    """Raises ``ContradictionError`` where it is not known what units in use mean."""
    desired = desired_unit(share_node.spec)
    granted = stored_granted_units(snapshot.assigned)
    served = _recorded_unit(snapshot, share_node)
    if served is None and _is_held(desired, held, snapshot, granted):
        served = desired
    if granted:
        reported = with_reported_parts(desired, granted)
        served = granted_unit((served, most_annotated(held), desired, reported), granted)
    unit, blocked_by = unit_in_force(desired, served, held)
    present = snapshot.cards or ()
    layout = _layout(snapshot, present, unit, granted, held=bool(held))
    if not _is_too_fine(layout, snapshot.limit):
        offering = Offering(layout=layout, blocked_by=blocked_by)
        return _unless_in_vain(offering, snapshot, desired) if blocked_by else offering
    last_good = _last_good(snapshot, served, granted, held=bool(held)) if served else None
    if last_good and blocked_by:  # the refusal would be of the unit to come
        offering = Offering(layout=last_good, blocked_by=blocked_by)
        return _unless_in_vain(offering, snapshot, desired)
    kept = last_good.places if last_good else {}
    return replace(
        _refusal(layout, snapshot.limit),
        layout=last_good,
        left_out=tuple(card for card in present if card.uuid not in kept) if last_good else (),
    )


def _unless_in_vain(offering: Offering, snapshot: NodeSnapshot, desired: NodeUnit) -> Offering:
    """Returns ``offering``, in which pods are in the way of ``desired``; no pod has to end for a unit that is
    too fine to come into force."""
    reserved = offering.layout.reserved if offering.layout else 0
    coming = lay_out(snapshot.cards or (), desired, reserved=reserved)
    if not _is_too_fine(coming, snapshot.limit):
        return offering
    return replace(_refusal(coming, snapshot.limit), layout=offering.layout)


def _is_too_fine(layout: Layout, limit: int) -> bool:
    return not fits(layout, limit=limit) and part_of(layout.unit, ResourceClass.MEMORY) is not None


def _refusal(layout: Layout, limit: int) -> Offering:
    return Offering(
        finest_unit=finest_unit(_cards(layout), layout.unit, reserved=layout.reserved, limit=limit),
        refused_unit=layout.unit,
        desired_units=layout.units,
    )


def _is_held(
    unit: NodeUnit, held: Sequence[HeldUnit], snapshot: NodeSnapshot, granted: Sequence[GrantedUnits]
) -> bool:
    """Whether what pods hold can be units of ``unit``, which is of several classes, as after a policy was
    deleted and applied anew. What a single pod holds cannot tell that."""
    if len(unit.parts) == 1 or any(pod.unit and pod.unit.meaning not in unit.meanings for pod in held):
        return False
    try:
        _layout(snapshot, snapshot.cards or (), unit, granted, held=bool(held))
    except ContradictionError:
        return False
    return True


def _last_good(
    snapshot: NodeSnapshot, unit: NodeUnit, granted: Sequence[GrantedUnits], *, held: bool
) -> Layout | None:
    """Returns what worked before: ``unit`` with the cards that were offered, others as far as they fit."""
    known = known_layout(snapshot)
    before = {*(known.places if known else ()), *(grant.card for grant in granted)}
    chosen: list[PhysicalCard] = []
    last_good = None
    for card in sorted(snapshot.cards or (), key=lambda card: card.uuid not in before):
        layout = _layout(snapshot, [*chosen, card], unit, granted, held=held)
        if fits(layout, limit=snapshot.limit):
            chosen.append(card)
            last_good = layout
    return last_good


def _layout(
    snapshot: NodeSnapshot,
    present: Sequence[PhysicalCard],
    unit: NodeUnit,
    granted: Sequence[GrantedUnits],
    *,
    held: bool,
) -> Layout:
    """Returns the layout of the cards that are ``present``. While units are ``held``, their cards stay where
    they were, by:
    1. the recorded layout, unless what was ``granted`` contradicts it;
    2. what was granted. Raises ``ContradictionError`` where that does not go together."""
    reserved = parse_memory(snapshot.share_node.spec.reserved_memory) if snapshot.share_node else 0
    known = known_layout(snapshot)
    if held and known and known.unit.meanings == unit.meanings and agrees(known, granted):
        _verify_record(snapshot, known)
        cards = keep_places(present, _cards(known), held=True)
        return lay_out(cards, unit, reserved=reserved, places=known.places)
    if held or (known is None and _may_hold(snapshot)):
        granted = [*granted, *_other_granted_units(snapshot, unit)]
    found = lay_out(present, unit, reserved=reserved)
    if agrees(found, granted) and has_sizes(found, granted):
        return found
    placed = placed_cards(granted_cards(granted, present, unit), unit)
    cards = keep_places(present, [card for card, _ in placed], held=True)
    return lay_out(cards, unit, reserved=reserved, places={card.uuid: first for card, first in placed})


def _may_hold(snapshot: NodeSnapshot) -> bool:
    """Whether nothing is known yet of what is assigned, and a pod asks for units, annotated or not."""
    asking = (pod for pod in snapshot.pods.values() if pod.request and pod.request.containers)
    return not snapshot.assigned_known and any(asking)


def _verify_record(snapshot: NodeSnapshot, known: Layout) -> None:
    """Raises ``ContradictionError`` where annotations contradict the record, or it is unknown which units are
    held.

    A record from before the start of this process may be an old backup. Two pods may also have got each
    other's card and not been repaired before the restart: nothing says which of both is wrong.
    """
    if snapshot.last_layout is not None:
        return
    _require_assigned(snapshot)
    if doubtful := contradicting(known, snapshot.assigned, snapshot.pods, _node_name(snapshot)):
        raise ContradictionError(
            f"according to this GPUShareNode the units of {', '.join(doubtful)} lie on another card, or have"
            " another size, than according to their annotations: delete these pods, or let the plugin read"
            " the checkpoint of the kubelet"
        )


def _other_granted_units(snapshot: NodeSnapshot, unit: NodeUnit) -> list[GrantedUnits]:
    """Returns what annotations say of units in use, where no layout is recorded. Raises
    ``ContradictionError`` where it is not known which units are held, or what those of some pods mean."""
    _require_assigned(snapshot)
    granted = annotated_granted_units(snapshot.assigned, snapshot.pods, _node_name(snapshot))
    if unknown := pods_without_evidence(
        snapshot.assigned, [*stored_granted_units(snapshot.assigned), *granted]
    ):
        raise ContradictionError(
            f"it is unknown on which card the units of these pods lie: {', '.join(unknown)}; delete them, or"
            " wait until the kubelet has ended those that are deleted"
        )
    if other := {grant.holder for grant in granted if not grant.is_of(unit)}:
        raise ContradictionError(
            f"units of {unit.text} are held, and by their annotations units of another size by"
            f" {', '.join(sorted(other))}: delete these pods"
        )
    return granted


def _require_assigned(snapshot: NodeSnapshot) -> None:
    """Raises ``NotShownError`` where it is not known yet which units are held."""
    if not snapshot.assigned_known:
        raise NotShownError


def _node_name(snapshot: NodeSnapshot) -> str:
    return snapshot.share_node.metadata.name if snapshot.share_node else ""


def _problem(spec: NodeSpec) -> Problem | None:
    if readable_unit(spec.memory_unit) is None:
        return Problem("InvalidUnit", f"memoryUnit {spec.memory_unit!r} is no size: use one such as 1Gi")
    if spec.mode in (Mode.SLICES, Mode.MIXED) and spec.slices_per_card is None:
        return Problem("InvalidUnit", f"mode {spec.mode} needs slicesPerCard, such as 2")
    return None


def desired_unit(spec: NodeSpec) -> NodeUnit:
    """Returns what ``spec``, of a mode that is served, calls one unit. Raises ``ValueError`` if nothing."""
    return NODE_MODES[spec.mode].unit(UnitFields(spec.memory_unit, spec.slices_per_card))


def _as_before(snapshot: NodeSnapshot, share_node: GPUShareNode) -> Layout | None:
    """Returns what was offered while units are held, as far as the present cards can serve it. Raises
    ``ContradictionError`` where it is not known what units in use mean."""
    known = known_layout(snapshot)
    if known is None or not agrees(known, stored_granted_units(snapshot.assigned)):
        return None
    _verify_record(snapshot, known)
    cards = _cards(known) if snapshot.cards is None else keep_places(snapshot.cards, _cards(known), held=True)
    return lay_out(
        cards, known.unit, reserved=parse_memory(share_node.spec.reserved_memory), places=known.places
    )


def _recorded_unit(snapshot: NodeSnapshot, share_node: GPUShareNode) -> NodeUnit | None:
    if snapshot.last_layout:
        return snapshot.last_layout.unit
    try:
        return parse_node_unit(share_node.status.memory_unit)
    except ValueError:
        return None


def known_dialect(snapshot: NodeSnapshot) -> Dialect | None:
    """Returns in whose names units were offered last, also before the plugin was restarted."""
    if snapshot.last_dialect or snapshot.share_node is None:
        return snapshot.last_dialect
    return recorded_dialect(snapshot.share_node.status)


def known_layout(snapshot: NodeSnapshot) -> Layout | None:
    """Returns what was offered last, also before the plugin was restarted."""
    if snapshot.last_layout or snapshot.share_node is None:
        return snapshot.last_layout
    return recorded_layout(snapshot.share_node.status)


def is_recorded(offering: Offering, share_node: GPUShareNode) -> bool:
    """Whether the status says what the IDs mean that are offered, and by which names they go."""
    status, layout = share_node.status, offering.layout
    if layout is None or recorded_dialect(status) is not offering.dialect:
        return layout is None
    return layout.means_the_same(recorded_layout(status))


def _cards(layout: Layout) -> Sequence[PhysicalCard]:
    return [placed.card for placed in layout.cards]
