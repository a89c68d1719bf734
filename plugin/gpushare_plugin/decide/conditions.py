"""The conditions of a GPUShareNode: what holds, why, and what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.conditions import Condition, condition
from gpushare_core.api.names import (
    CARDS_HEALTHY,
    LEDGER_IN_SYNC,
    REGISTERED,
    UNIT_CHANGE_BLOCKED,
    UNIT_TOO_FINE,
)
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.decide.layout import Layout, PlacedCard
from gpushare_plugin.decide.offering import Offering


@dataclass(frozen=True, slots=True)
class Registration:
    """How it stands with the kubelet."""

    registered: bool
    message: str = ""
    """Why not, for people."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """How the annotations stand to the kubelet's books."""

    readable: bool
    """Whether PodResources answered."""
    wrong: Sequence[str] = ()
    """Pods whose annotation could not be set right yet."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition without its times."""

    kind: str
    reason: str
    message: str = ""
    status: bool | None = field(kw_only=True)


def conditions(
    node: GPUShareNode, offering: Offering, registration: Registration, ledger: Ledger, *, now: datetime
) -> list[Condition]:
    """All conditions of ``node``, as of ``now``."""
    findings = (
        _registered(offering, registration),
        _cards_healthy(offering.layout),
        _ledger_in_sync(ledger),
        _unit_too_fine(node, offering),
        _unit_change_blocked(node, offering),
    )
    generation = node.metadata.generation
    return [
        condition(
            each.kind,
            status=each.status,
            reason=each.reason,
            message=each.message,
            generation=generation,
            now=now,
        )
        for each in findings
    ]


def _registered(offering: Offering, registration: Registration) -> Finding:
    layout = offering.layout
    if offering.problem:
        kept = f"; {_BEFORE}" if layout else ""
        return Finding(REGISTERED, offering.problem.reason, offering.problem.message + kept, status=False)
    if layout is None:
        return Finding(REGISTERED, *_nothing_offered(offering), status=False)
    if not layout.cards:
        return Finding(REGISTERED, "NoCards", "no card was found on this node", status=False)
    if not layout.units:
        largest = max(placed.card.memory for placed in layout.cards)
        return Finding(REGISTERED, "UnitTooCoarse", _too_coarse(layout, largest), status=False)
    if not registration.registered:
        return Finding(REGISTERED, "KubeletUnreachable", registration.message, status=False)
    return Finding(REGISTERED, "Registered", status=True)


_BEFORE = "what was served before goes on while pods hold it"


def _nothing_offered(offering: Offering) -> tuple[str, str]:
    if offering.finest:
        return ("UnitTooFine", f"nothing is offered: set memoryUnit to {offering.finest.text} or more")
    return ("NotShared", "this node is not shared")


def _too_coarse(layout: Layout, largest: int) -> str:
    return (
        f"a unit of {layout.unit.text} does not fit the largest card, which has {largest} bytes less what is"
        " reserved: set a smaller memoryUnit or reservedMemory"
    )


def _cards_healthy(layout: Layout | None) -> Finding:
    if layout is None:
        return Finding(CARDS_HEALTHY, "NothingOffered", status=None)
    ill = list(_ill(layout.cards))
    if ill:
        return Finding(CARDS_HEALTHY, "CardsUnhealthy", "; ".join(ill), status=False)
    small = [str(placed.card.index) for placed in layout.cards if not placed.units]
    if small:
        told = f"cards {', '.join(small)} are smaller than a unit of {layout.unit.text} and serve nothing"
        return Finding(CARDS_HEALTHY, "UnitTooCoarse", told, status=True)
    return Finding(CARDS_HEALTHY, "AllHealthy", status=True)


def _ill(cards: Sequence[PlacedCard]) -> Iterator[str]:
    for placed in cards:
        if not placed.card.healthy:
            yield f"card {placed.card.index} ({placed.uuid}): {placed.card.reason or 'unhealthy'}"


def _ledger_in_sync(ledger: Ledger) -> Finding:
    if not ledger.readable:
        return Finding(
            LEDGER_IN_SYNC, "PodResourcesUnreachable", "the kubelet's books cannot be read", status=None
        )
    if ledger.wrong:
        told = f"annotations that differ from the kubelet's books: {', '.join(ledger.wrong)}"
        return Finding(LEDGER_IN_SYNC, "RepairPending", told, status=False)
    return Finding(LEDGER_IN_SYNC, "InSync", status=True)


def _unit_too_fine(node: GPUShareNode, offering: Offering) -> Finding:
    if offering.finest is None:
        return Finding(UNIT_TOO_FINE, "Fits", status=False)
    now = f"; {offering.layout.unit.text} stays in force" if offering.layout else ""
    told = (
        f"memoryUnit {node.spec.memory_unit} makes {offering.wanted_units} units, more than the kubelet takes"
        f" in one message: the finest that works here is {offering.finest.text}{now}"
    )
    return Finding(UNIT_TOO_FINE, "TooManyUnits", told, status=True)


def _unit_change_blocked(node: GPUShareNode, offering: Offering) -> Finding:
    if not offering.blocked_by or offering.layout is None:
        return Finding(UNIT_CHANGE_BLOCKED, "NotBlocked", status=False)
    pods = "1 pod holds" if offering.blocked_by == 1 else f"{offering.blocked_by} pods hold"
    wanted = f"mode {node.spec.mode}" if offering.problem else f"memoryUnit {node.spec.memory_unit}"
    told = f"{wanted} is applied when {pods} no more units of {offering.layout.unit.text}"
    return Finding(UNIT_CHANGE_BLOCKED, "PodsHoldUnits", told, status=True)
