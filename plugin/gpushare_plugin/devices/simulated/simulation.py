"""What happens to simulated cards: read from an annotation of the GPUShareNode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import CardEvent, PhysicalCard, Reading

FAILS = "it is simulated to fail: remove it from the annotation gpushare.io/simulate"
HANGS = Problem(
    "DriverHung",
    "the driver is simulated to hang: remove driver=hung from the annotation gpushare.io/simulate",
)
HELP = (
    "use words such as fail=0,2 vanish=1 shift=1 driver=hung repair=1 xid=0:79,1:48, with indices of cards as"
    " they were made"
)
REPAIR = Problem(
    "RecoveryActionDue", "a repair is simulated: remove it from the annotation gpushare.io/simulate when done"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Cards by the index with which they were made."""

    fail: frozenset[int] = frozenset()
    """Cards that are not healthy."""
    vanish: frozenset[int] = frozenset()
    """Cards that are not found."""
    shift: int = 0
    """By how much the indices of all cards grow, those of the last cards starting again at 0."""
    repair: frozenset[int] = frozenset()
    """Cards for which the driver reports that a repair is due."""
    xids: frozenset[tuple[int, int]] = frozenset()
    """Card and Xid: events that happen when they are added."""
    hangs: bool = False
    """Whether the driver does not answer."""


def read_simulation(text: str) -> Simulation:
    """Returns what ``text`` asks for: words such as ``fail=0,2 vanish=1 shift=1 driver=hung xid=1:79``.
    Raises ``ValueError``, which says what can be asked for."""
    simulation = Simulation()
    for word in text.split():
        try:
            name, value = word.split("=")
            simulation = _with(simulation, name, value)
        except ValueError as error:
            raise ValueError(f"the annotation gpushare.io/simulate has {word!r}: {HELP}") from error
    return simulation


def _with(simulation: Simulation, name: str, value: str) -> Simulation:
    """Raises ``ValueError``."""
    match name:
        case "fail" | "vanish" | "repair":
            cards: dict[str, Any] = {name: _indices(value)}
            return replace(simulation, **cards)
        case "shift":
            return replace(simulation, shift=int(value))
        case "xid":
            return replace(simulation, xids=frozenset(map(_xid, value.split(","))))
        case "driver" if value == "hung":
            return replace(simulation, hangs=True)
    raise ValueError(name)


def _indices(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(","))


def _xid(text: str) -> tuple[int, int]:
    card, xid = text.split(":")
    return int(card), int(xid)


def simulated_reading(cards: Sequence[PhysicalCard], text: str, before: str | None = None) -> Reading:
    """Returns the reading of ``cards``, which are healthy as they were made, after what ``text`` says.

    ``before``: the text of the last reading, whose events are over; None where there was no reading, and then
    no event is reported. A text that cannot be read is a problem, and nothing happens to the cards.
    """
    try:
        simulation = read_simulation(text)
    except ValueError as error:
        return Reading(cards=tuple(cards), problem=Problem("SimulationUnreadable", str(error)))
    present = (card for card in cards if card.index not in simulation.vanish)
    happened = (_happened(card, simulation, len(cards)) for card in present)
    ordered = tuple(sorted(happened, key=lambda card: card.index))
    events = simulation.xids - _xids_of(text if before is None else before)
    uuids = {index: card.uuid for index, card in enumerate(cards)}
    return Reading(
        cards=ordered,
        events=tuple(CardEvent(uuids[index], xid) for index, xid in sorted(events) if index in uuids),
        problem=HANGS if simulation.hangs else None,
    )


def _xids_of(text: str) -> frozenset[tuple[int, int]]:
    try:
        return read_simulation(text).xids
    except ValueError:
        return frozenset()


def _happened(card: PhysicalCard, simulation: Simulation, count: int) -> PhysicalCard:
    moved = replace(card, index=(card.index + simulation.shift) % count)
    if simulation.hangs:
        return replace(moved, healthy=False, reason=HANGS.message)
    if card.index in simulation.repair:
        moved = replace(moved, repair=REPAIR)
    return replace(moved, healthy=False, reason=FAILS) if card.index in simulation.fail else moved
