"""The conditions of a GPUShareNode: what holds, why, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_core.api.conditions import (
    ConditionState,
    condition_false,
    condition_true,
    condition_unknown,
)
from gpushare_core.api.enums import Injection
from gpushare_core.api.names import (
    CARDS_CORDONED,
    CARDS_HEALTHY,
    CORDON_ANNOTATION,
    LEDGER_IN_SYNC,
    REGISTERED,
    UNIT_CHANGE_BLOCKED,
    UNIT_TOO_FINE,
)
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.audit.difference import Difference
from gpushare_core.dialects.visible_cards import APPLICATION_VARIABLES, RUNTIME_SUFFIX, is_runtime_variable
from gpushare_core.placement.modes.table import unit_asked_for
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import NodeUnit, UnitFields, part_of
from gpushare_plugin.decide.health.cordon import NO_CORDON, Cordon
from gpushare_plugin.decide.offer.offering import (
    LAYOUT_UNKNOWN,
    POD_RESOURCES_UNAVAILABLE,
    Offering,
    desired_unit,
    is_draining,
)
from gpushare_plugin.decide.report.self_audit import TOO_MUCH
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.quantity_text import quantity_text
from gpushare_plugin.devices.card import LeftOutCard, Reading


@dataclass(frozen=True, slots=True)
class RegistrationState:
    """Whether the kubelet listens to this plugin, and why not."""

    registered: bool
    message: str = ""
    reason: str = "KubeletUnreachable"
    displaced: bool = False
    """Whether another plugin serves this node: then that one repairs and reports."""


STOPPING = RegistrationState(
    registered=False, reason="Stopping", message="the plugin of this node stops: wait for the next one"
)


@dataclass(frozen=True, slots=True)
class AnnotationState:
    """How the pods' annotations compare with what the kubelet has assigned."""

    pod_resources_available: bool
    differing: Sequence[str] = ()
    """Pods whose annotation could not be repaired yet, and why."""
    checkpoint_problem: str = ""
    """Why the kubelet's checkpoint cannot be read."""
    lost: Sequence[str] = ()
    """Running pods whose units the kubelet does not know (any more)."""
    doubtful: Sequence[str] = ()
    """Foreign units that may be fewer than they count as, and why."""
    differences: Sequence[Difference] = ()
    """What the audit found."""


NOTHING_READ = Reading()
_MAX_WORDS = 5
"""Unknown words of an annotation in a message."""
_MAX_SENTENCES = 3
"""Sentences in a message: a node may have hundreds of pods, and a condition takes 32 KiB."""
_MAX_PODS = 5
"""Names of pods in a message."""


def node_conditions(
    spec: NodeSpec,
    offering: Offering,
    registration: RegistrationState,
    annotations: AnnotationState,
    *,
    reading: Reading = NOTHING_READ,
    cordon: Cordon = NO_CORDON,
    excess: Sequence[ConditionState] = (),
    isolation: Sequence[ConditionState] = (),
) -> list[ConditionState]:
    """``excess``: the condition about memory in use, where containers are measured. ``isolation``: those
    about what keeps containers to their units, where the policy asks for it."""
    return [
        _registered(spec, offering, registration, reading),
        _cards_healthy(offering.layout, reading),
        _cards_cordoned(offering.layout, cordon),
        _ledger_in_sync(offering, annotations),
        _unit_too_fine(spec, offering),
        _unit_change_blocked(spec, offering),
        *isolation,
        *excess,
    ]


def _registered(
    spec: NodeSpec, offering: Offering, registration: RegistrationState, reading: Reading
) -> ConditionState:
    layout = offering.layout
    if registration == STOPPING:
        return condition_false(REGISTERED, registration.reason, registration.message)
    if offering.problem:
        kept = "; the earlier resource stays while pods hold units of it" if layout else ""
        return condition_false(REGISTERED, offering.problem.reason, offering.problem.message + kept)
    if layout is None:
        return _nothing_offered(offering)
    if not layout.cards:
        message = "no card was found on this node: see devices in the policy, and the cards' driver"
        if reading.left_out:
            message = f"no card of this node can be shared: {_left_out(reading.left_out)}"
        return condition_false(REGISTERED, "NoCards", message)
    if not layout.units:
        return condition_false(REGISTERED, "UnitTooCoarse", _too_coarse(layout))
    if not registration.registered:
        return condition_false(REGISTERED, registration.reason, registration.message)
    by_variable = spec.devices.injection is Injection.ENVIRONMENT
    return condition_true(REGISTERED, "Registered", _unprotected(layout.cards) if by_variable else "")


def _unprotected(cards: Sequence[PlacedCard]) -> str:
    """Names a variable of which it is unknown whether a container runtime reads it."""
    names = {placed.card.equipment.runtime_variable for placed in cards if placed.card.equipment}
    known = {*APPLICATION_VARIABLES, *filter(is_runtime_variable, names), ""}
    unknown = sorted(names - known)
    if not unknown:
        return ""
    return (
        f"pods may set {unknown[0]}, the visibleCards.variable of the inventory: if a container runtime"
        " of this node reads it, they can show themselves cards that they do not hold; see that it reads a"
        f" name that ends in {RUNTIME_SUFFIX}, which pods may not set, or use devices.injection CDI"
    )


def _nothing_offered(offering: Offering) -> ConditionState:
    if offering.postponed:
        message = f"nothing is offered yet: {offering.postponed.message}"
        return condition_false(REGISTERED, offering.postponed.reason, message)
    if offering.finest_unit:
        message = f"nothing is offered: set memoryUnit to {offering.finest_unit.text} or more"
        return condition_false(REGISTERED, "UnitTooFine", message)
    return condition_false(REGISTERED, "NotShared", "this node is not shared")


def _too_coarse(layout: Layout) -> str:
    largest = quantity_text(max(placed.card.memory for placed in layout.cards))
    reserved = f", less the {quantity_text(layout.reserved)} that is reserved" if layout.reserved else ""
    advice = (
        "a smaller memoryUnit or reservedMemory"
        if part_of(layout.unit, ResourceClass.MEMORY)
        else "a smaller reservedMemory"
    )
    return f"no card has a unit of {layout.unit.text}: the largest has {largest}{reserved}; set {advice}"


def _too_small(layout: Layout) -> str:
    left = f"have no more memory than the {quantity_text(layout.reserved)} that is reserved"
    if part_of(layout.unit, ResourceClass.MEMORY) is None:
        return left
    beside = f" beside the {quantity_text(layout.reserved)} that is reserved" if layout.reserved else ""
    return f"have no room for a unit of {layout.unit.text}{beside}"


def _cards_healthy(layout: Layout | None, reading: Reading) -> ConditionState:
    if layout is None:
        return condition_unknown(CARDS_HEALTHY, "NothingOffered", "nothing is offered: see Registered")
    if not layout.cards and not (reading.problem or reading.left_out):
        return condition_unknown(CARDS_HEALTHY, "NoCards", "there is no card: see Registered")
    if problem := reading.problem:
        usable = any(placed.card.healthy for placed in layout.cards)
        state = condition_unknown if usable else condition_false
        return state(CARDS_HEALTHY, problem.reason, problem.message)
    unhealthy = [
        f"card {placed.card.index} ({placed.uuid}): {placed.card.reason or 'unhealthy'}"
        for placed in layout.cards
        if not placed.card.healthy
    ]
    unhealthy += [_left_out_card(card) for card in reading.left_out if not card.healthy]
    if unhealthy:
        return condition_false(CARDS_HEALTHY, "CardsUnhealthy", "; ".join(unhealthy))
    if reading.left_out:
        return condition_true(CARDS_HEALTHY, "CardsLeftOut", _left_out(reading.left_out))
    if small := [str(placed.card.index) for placed in layout.cards if not placed.units]:
        message = f"cards {', '.join(small)} {_too_small(layout)} and serve nothing"
        return condition_true(CARDS_HEALTHY, "UnitTooCoarse", message)
    return condition_true(CARDS_HEALTHY, "AllHealthy")


def _cards_cordoned(layout: Layout | None, cordon: Cordon) -> ConditionState:
    """True where a card is cordoned. Unknown words of the annotation are named in any case."""
    cards = layout.cards if layout else ()
    closed = [f"card {placed.card.index} ({placed.uuid})" for placed in cards if placed.card.cordoned]
    messages = []
    if closed:
        messages.append(
            f"no new pod gets {', '.join(closed)}, and pods there stay: remove them from the"
            f" annotation {CORDON_ANNOTATION} when they should serve again"
        )
    if cordon.unknown:
        messages.append(
            f"the annotation {CORDON_ANNOTATION} has {', '.join(map(repr, cordon.unknown[:_MAX_WORDS]))},"
            " which is no card of this node and cordons nothing: use UUIDs or indices of its cards,"
            " separated by commas"
        )
    if not messages:
        return condition_false(CARDS_CORDONED, "NoneCordoned")
    state = condition_true if closed else condition_false
    return state(CARDS_CORDONED, "UnknownCards" if cordon.unknown else "Cordoned", "; ".join(messages))


def _left_out(cards: Sequence[LeftOutCard]) -> str:
    return "; ".join(map(_left_out_card, cards))


def _left_out_card(card: LeftOutCard) -> str:
    uuid = f" ({card.uuid})" if card.uuid else ""
    return f"card {card.index}{uuid} is left out: {card.reason}"


def _ledger_in_sync(offering: Offering, annotations: AnnotationState) -> ConditionState:
    if offering.layout is None and (postponed := offering.postponed):
        message = "annotations are not compared: what units in use mean is not known; see Registered"
        if postponed.reason == LAYOUT_UNKNOWN:
            return condition_false(LEDGER_IN_SYNC, LAYOUT_UNKNOWN, message)
        return condition_unknown(LEDGER_IN_SYNC, postponed.reason, message)
    if not annotations.pod_resources_available:
        return condition_unknown(
            LEDGER_IN_SYNC, POD_RESOURCES_UNAVAILABLE.reason, POD_RESOURCES_UNAVAILABLE.message
        )
    if too_much := [difference for difference in annotations.differences if difference.kind in TOO_MUCH]:
        return condition_false(LEDGER_IN_SYNC, "OverCommitted", _sentences(too_much))
    if annotations.differing:
        message = (
            "annotations that differ from the kubelet's records and could not be corrected"
            f" yet: {_first_few(annotations.differing)}"
        )
        return condition_false(LEDGER_IN_SYNC, "RepairPending", message)
    if annotations.lost:
        message = (
            f"the kubelet has lost the units of pods that run: {', '.join(annotations.lost)}; the"
            " plugin keeps these units free for them: delete these pods, so that their controllers create"
            " them again, and move the file of a static pod away for a moment"
        )
        return condition_false(LEDGER_IN_SYNC, "KubeletForgot", message)
    if annotations.doubtful:
        message = (
            "units that the replaced plugin gave out count as more rather than fewer:"
            f" {'; '.join(annotations.doubtful)}; set memoryUnit to that plugin's, or delete these pods"
        )
        return condition_false(LEDGER_IN_SYNC, "ForeignUnits", message)
    if annotations.differences:
        return condition_false(LEDGER_IN_SYNC, "BooksDiffer", _sentences(annotations.differences))
    message = ""
    if annotations.checkpoint_problem:
        message = (
            "the kubelet's checkpoint cannot be read, pods are known by name and annotation alone: mount the"
            f" kubelet's folder device-plugins as the manifests do; {annotations.checkpoint_problem}"
        )
    return condition_true(LEDGER_IN_SYNC, "InSync", message)


def _sentences(differences: Sequence[Difference]) -> str:
    return _first_few([difference.sentence for difference in differences])


def _first_few(sentences: Sequence[str]) -> str:
    more = len(sentences) - _MAX_SENTENCES
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(sentences[:_MAX_SENTENCES]) + rest


def _unit_too_fine(spec: NodeSpec, offering: Offering) -> ConditionState:
    if offering.finest_unit is None or offering.refused_unit is None:
        if offering.layout is None:
            return condition_unknown(UNIT_TOO_FINE, "NothingOffered", "nothing is offered: see Registered")
        return condition_false(UNIT_TOO_FINE, "Fits")
    if offering.postponed and not _concerns(spec, offering, offering.refused_unit):
        return condition_unknown(UNIT_TOO_FINE, offering.postponed.reason, offering.postponed.message)
    refused = part_of(offering.refused_unit, ResourceClass.MEMORY)
    in_force = f"; {offering.layout.unit.text} stays in force" if offering.layout else ""
    left_out = "".join(f"; card {card.index} ({card.uuid}) is left out" for card in offering.left_out)
    message = (
        f"memoryUnit {refused.text if refused else ''} makes {offering.desired_units} units, more than the"
        f" kubelet takes in one message: the finest that works here is {offering.finest_unit.text}"
        f"{in_force}{left_out}"
    )
    return condition_true(UNIT_TOO_FINE, "TooManyUnits", message)


def _concerns(spec: NodeSpec, offering: Offering, unit: NodeUnit) -> bool:
    """Whether ``unit`` is asked for now, or in force: an offering that was kept may be of an earlier spec."""
    in_force = offering.layout.unit if offering.layout else None
    desired = unit_asked_for(spec.mode, UnitFields(spec.memory_unit, spec.slices_per_card))
    return any(known is not None and known.meanings == unit.meanings for known in (in_force, desired))


def _unit_change_blocked(spec: NodeSpec, offering: Offering) -> ConditionState:
    if offering.layout and (postponed := offering.postponed):
        message = f"what the policy asks for now is not applied yet: {postponed.message}"
        return condition_true(UNIT_CHANGE_BLOCKED, postponed.reason, message)
    if offering.renaming_blocked_by and offering.layout:
        pods = offering.renaming_blocked_by
        holding = f"hold{_s(pods)} units by the names of {offering.dialect.name}"
        message = f"dialect {spec.dialect} is applied when {_gone(pods, holding)}"
        return condition_true(UNIT_CHANGE_BLOCKED, "PodsHoldUnits", message)
    if not offering.blocked_by or offering.layout is None:
        return condition_false(UNIT_CHANGE_BLOCKED, "NotBlocked")
    change = f"mode {spec.mode}" if offering.problem else _change(spec, offering.layout)
    holding = f"hold{_s(offering.blocked_by)} units of {offering.layout.unit.text}"
    drains = "; until then no new pod gets units here" if is_draining(spec, offering) else ""
    message = f"{change} is applied when {_gone(offering.blocked_by, holding)}{drains}"
    return condition_true(UNIT_CHANGE_BLOCKED, "PodsHoldUnits", message)


def _gone(pods: Sequence[str], holding: str) -> str:
    """Returns words such as ``this pod is gone, which holds ...: NAME``."""
    more = len(pods) - _MAX_PODS
    rest = f" and {more} more" if more > 0 else ""
    who = "this pod is gone" if len(pods) == 1 else f"these {len(pods)} pods are gone"
    return f"{who}, which {holding}: {', '.join(pods[:_MAX_PODS])}{rest}"


def _s(pods: Sequence[str]) -> str:
    return "s" if len(pods) == 1 else ""


def _change(spec: NodeSpec, layout: Layout) -> str:
    """Returns the field of the policy that asks for another unit than ``layout`` has."""
    desired, served = desired_unit(spec), layout.unit
    if [part.resource for part in desired.parts] != [part.resource for part in served.parts]:
        return f"mode {spec.mode}"
    is_memory = part_of(desired, ResourceClass.MEMORY) != part_of(served, ResourceClass.MEMORY)
    return f"memoryUnit {spec.memory_unit}" if is_memory else f"slicesPerCard {spec.slices_per_card}"
