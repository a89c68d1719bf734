"""Which cards are sick, and when they return.

After an Xid NVML answers as before, so that its answers do not prove that a card is well. A sick card returns

1. when the driver reports no repair that is due, and a quiet time has passed without another symptom; or
2. when an administrator says so.

A card that falls sick again soon has to be quiet for twice as long. All of it is in the status, so that a
restart of the plugin brings no sick card back.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import msgspec

from gpushare_core.api.enums import ClearedBy
from gpushare_core.api.names import CLEAR_FAULT_ANNOTATION
from gpushare_core.api.share_node import CardFault, CardHealth, GPUShareNode
from gpushare_core.api.timestamps import read_rfc3339, rfc3339
from gpushare_plugin.decide.health.xids import xid_message
from gpushare_plugin.decide.units.layout import GONE
from gpushare_plugin.devices.card import PhysicalCard, Reading

CARD_ERROR = "CardError"
"""Reason: the driver answers with an error for the card."""
CARD_GONE = "CardGone"
"""Reason: the card is not found, and pods have units of it."""
_NEEDS_CARD = frozenset({CARD_ERROR, CARD_GONE})
"""Faults that an administrator cannot clear while they stand."""

CONFIRMATION = timedelta(seconds=1)
"""For so long the driver has to answer with an error that may pass, until the card is sick."""
ANSWER_QUIET = timedelta(seconds=10)
"""Longest first quiet time of a card that only had errors: an answer without one proves that it is well."""
MAX_QUIET = timedelta(days=1)
FORGET_AFTER = timedelta(days=1)
"""A card that was well for so long has no relapse, and one that was gone for so long no fault."""
STORM = timedelta(seconds=10)
"""In this time an event counts once, because there can be thousands a second: neither the same one again nor
another one of a fault that lasts is new. An event that asks for a longer quiet time always is."""

Faults = Mapping[str, CardFault]
"""By the card's UUID; also of cards that have returned, until ``FORGET_AFTER``."""


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """The health of a node's cards, from one reading to the next."""

    faults: Faults = field(default_factory=dict)
    suspected: Mapping[str, datetime] = field(default_factory=dict)
    """UUID of a card -> since when it has an error that may pass."""
    missing: Mapping[str, datetime] = field(default_factory=dict)
    """UUID of a card with a fault -> since when it is not found."""


@dataclass(frozen=True, slots=True)
class _Symptom:
    reason: str
    message: str
    stands: bool = True
    """Whether it is present now; False for an event."""
    quiet: timedelta | None = None
    """Longest first quiet time; None: the policy's."""


def recorded_health(share_node: GPUShareNode) -> HealthRecord:
    return HealthRecord({fault.uuid: fault for fault in share_node.status.faults})


def examine(
    before: HealthRecord, reading: Reading, share_node: GPUShareNode, *, now: datetime
) -> HealthRecord:
    rules = share_node.spec.devices.health
    suspected, missing = _suspected(before, reading, now), _missing(before, reading, now)
    faults = {}
    for uuid in _named(before, reading, share_node):
        card, symptoms = _card(uuid, reading), [*_symptoms(uuid, reading, rules, share_node)]
        proven = reading.problem is None and card and not card.unproven  # all symptoms that stand are known
        fault = _cleared(before.faults.get(uuid), share_node, now)
        if _is_only_suspected(symptoms, suspected.get(uuid), now):
            symptoms = [symptom for symptom in symptoms if symptom.reason != CARD_ERROR]
        elif fault and proven and not any(symptom.stands for symptom in symptoms):
            fault = _quiet(fault, now) if symptoms else _returned_if_due(_quiet(fault, now), now)
        for symptom in symptoms:
            quiet = _quiet_time(fault, symptom, rules)
            if fault and _is_nothing_new(fault, symptom, quiet=quiet, now=now):
                fault = _reworded(fault, symptom)
            else:
                fault = _fallen(uuid, fault, symptom, quiet=quiet, now=now)
        if fault and not fault.cleared and (reading.problem or card is None):
            fault = msgspec.structs.replace(fault, quiet_since="")
        stands = any(symptom.stands for symptom in symptoms)
        if fault and (stands or not _is_forgotten(fault, missing.get(uuid), now)):
            faults[uuid] = fault
    return HealthRecord(faults, suspected, missing)


def _named(before: HealthRecord, reading: Reading, share_node: GPUShareNode) -> list[str]:
    """Returns the UUIDs of all cards that may have a fault.

    A card that only an event names is among them, unless people have left it out on purpose.
    """
    cards = (card.uuid for card in reading.cards)
    left_out = {card.uuid for card in reading.left_out if card.healthy}
    events = (event.uuid for event in reading.events if event.uuid and event.uuid not in left_out)
    return [*dict.fromkeys([*before.faults, *cards, *events, *_held(share_node)])]


def _held(share_node: GPUShareNode) -> list[str]:
    return [card.uuid for card in share_node.status.cards if card.pods]


def _suspected(before: HealthRecord, reading: Reading, now: datetime) -> dict[str, datetime]:
    if reading.problem:
        return dict(before.suspected)
    return {
        card.uuid: before.suspected.get(card.uuid, now)
        for card in reading.cards
        if card.passing and not card.healthy
    }


def _missing(before: HealthRecord, reading: Reading, now: datetime) -> dict[str, datetime]:
    """Returns no card while the source cannot say which cards there are."""
    if reading.problem:
        return {}
    found = {card.uuid for card in reading.cards}
    return {uuid: before.missing.get(uuid, now) for uuid in before.faults if uuid not in found}


def _is_only_suspected(symptoms: Iterable[_Symptom], since: datetime | None, now: datetime) -> bool:
    errors = any(symptom.reason == CARD_ERROR for symptom in symptoms)
    return errors and since is not None and now - since < CONFIRMATION


def _card(uuid: str, reading: Reading) -> PhysicalCard | None:
    return next((card for card in reading.cards if card.uuid == uuid), None)


def _symptoms(uuid: str, reading: Reading, rules: CardHealth, share_node: GPUShareNode) -> Iterator[_Symptom]:
    """Yields events first, then the gravest symptom that stands; of a source with a problem only events."""
    for event in reading.events:
        if event.uuid in (uuid, "") and event.xid not in rules.ignored_xids:
            yield _Symptom(f"Xid{event.xid}", xid_message(event.xid), stands=False)
    if reading.problem:
        return
    card = _card(uuid, reading)
    if card is None:
        yield from _absence(uuid, reading) if uuid in _held(share_node) else ()
    elif card.repair:
        yield _Symptom(card.repair.reason, card.repair.message)
    elif not card.healthy and not card.unproven:
        yield _Symptom(CARD_ERROR, card.reason, quiet=ANSWER_QUIET)


def _absence(uuid: str, reading: Reading) -> Iterator[_Symptom]:
    """Yields why a card that pods hold units of cannot be shared; nothing where people left it out."""
    out = next((card for card in reading.left_out if card.uuid == uuid), None)
    if out is None:
        yield _Symptom(CARD_GONE, GONE, quiet=ANSWER_QUIET)
    elif not out.healthy:
        yield _Symptom(CARD_ERROR, out.reason, quiet=ANSWER_QUIET)


def _is_nothing_new(fault: CardFault, symptom: _Symptom, *, quiet: timedelta, now: datetime) -> bool:
    """``quiet``: the quiet time that the symptom asks for."""
    if symptom.stands:  # also where an administrator has cleared it
        return fault.reason == symptom.reason and not fault.quiet_since
    if fault.cleared or quiet > timedelta(seconds=fault.quiet_seconds):
        return False
    is_fresh = _is_in_storm(fault.since, now)  # then another reason is new
    is_known = fault.reason == symptom.reason or not fault.quiet_since or not is_fresh
    return is_known and _is_in_storm(fault.last_seen, now)


def _is_in_storm(stamp: str, now: datetime) -> bool:
    """Whether ``now`` is less than ``STORM`` after ``stamp``; not where the clock was set back."""
    moment = read_rfc3339(stamp)
    return moment is not None and timedelta() <= now - moment < STORM


def _reworded(fault: CardFault, symptom: _Symptom) -> CardFault:
    """The message of a fault may change, such as the repair that the driver asks for."""
    if fault.reason != symptom.reason or fault.message == symptom.message:
        return fault
    return msgspec.structs.replace(fault, message=symptom.message)


def _fallen(
    uuid: str, before: CardFault | None, symptom: _Symptom, *, quiet: timedelta, now: datetime
) -> CardFault:
    """Returns a new fault, or the one ``before`` with the new symptom where it has not been cleared."""
    stamp = rfc3339(now)
    lasting = before if before and not before.cleared else None
    return CardFault(
        uuid=uuid,
        reason=symptom.reason,
        message=symptom.message,
        since=lasting.since if lasting else stamp,
        last_seen=stamp,
        quiet_since="" if symptom.stands else stamp,
        quiet_seconds=int(quiet.total_seconds()),
        relapses=_relapses(before),
    )


def _relapses(before: CardFault | None) -> int:
    """Returns how often a card that has a symptom now has fallen sick again."""
    return before.relapses + bool(before.cleared) if before else 0


def _quiet_time(before: CardFault | None, symptom: _Symptom, rules: CardHealth) -> timedelta:
    """Twice as long with every relapse, and not shorter than that of a fault that has not been cleared."""
    first = timedelta(seconds=rules.quiet_seconds)
    if symptom.quiet:
        first = min(first, symptom.quiet)
    grown: timedelta = first * 2 ** min(_relapses(before), 20)
    quiet = min(grown, max(first, MAX_QUIET))
    lasting = before.quiet_seconds if before and not before.cleared else 0
    return max(quiet, timedelta(seconds=lasting))


def _quiet(fault: CardFault, now: datetime) -> CardFault:
    """Returns the fault of a card without a symptom that stands."""
    since = _moment(fault.quiet_since, now) if fault.quiet_since else now
    if since >= now:  # quiet from now on, or the clock was set back
        return msgspec.structs.replace(fault, quiet_since=rfc3339(now))
    return fault


def _returned_if_due(fault: CardFault, now: datetime) -> CardFault:
    quiet_for = now - _moment(fault.quiet_since, now)
    if fault.cleared or quiet_for < timedelta(seconds=fault.quiet_seconds):
        return fault
    return _returned(fault, ClearedBy.QUIET_TIME, now)


def _returned(fault: CardFault, by: ClearedBy, now: datetime) -> CardFault:
    return msgspec.structs.replace(fault, cleared=rfc3339(now), cleared_by=by)


def _cleared(fault: CardFault | None, share_node: GPUShareNode, now: datetime) -> CardFault | None:
    """Returns the fault, cleared where an administrator has named exactly this one."""
    if fault is None or fault.cleared or (fault.reason in _NEEDS_CARD and not fault.quiet_since):
        return fault
    words = share_node.metadata.annotations.get(CLEAR_FAULT_ANNOTATION, "").replace(",", " ").split()
    if clearance(fault) in words:
        return _returned(fault, ClearedBy.ADMINISTRATOR, now)
    return fault


def clearance(fault: CardFault) -> str:
    """Returns the word by which an administrator clears this fault, and no later one."""
    return f"{fault.uuid}@{fault.last_seen}"


def _is_forgotten(fault: CardFault, missing_since: datetime | None, now: datetime) -> bool:
    """Also of a card that was taken out of the node; not of one that is gone for a moment, as in a reset."""
    if fault.cleared and fault.quiet_since and now - _moment(fault.cleared, now) >= FORGET_AFTER:
        return True
    is_old = now - _moment(fault.last_seen, now) >= FORGET_AFTER
    return is_old and missing_since is not None and now - missing_since >= FORGET_AFTER


def _moment(text: str, otherwise: datetime) -> datetime:
    return read_rfc3339(text) or otherwise


def judged(reading: Reading, health: HealthRecord) -> Reading:
    return replace(reading, cards=tuple(_judged(card, reading, health) for card in reading.cards))


def _judged(card: PhysicalCard, reading: Reading, health: HealthRecord) -> PhysicalCard:
    fault = health.faults.get(card.uuid)
    if fault and not fault.cleared:
        return replace(card, healthy=False, reason=fault_text(fault))
    if reading.problem is None and card.uuid in health.suspected:
        return replace(card, healthy=True, reason="")
    return card


def fault_text(fault: CardFault) -> str:
    if fault.reason in _NEEDS_CARD and not fault.quiet_since:
        return fault.message
    by_hand = f"set the annotation {CLEAR_FAULT_ANNOTATION} to {clearance(fault)} to have it back at once"
    if not fault.quiet_since:
        return (
            f"{fault.message}; it returns {fault.quiet_seconds} s after the driver reports that it is done,"
            f" or {by_hand}"
        )
    return f"{fault.message}; it returns after {fault.quiet_seconds} s without another fault, or {by_hand}"


def seconds_until_due(health: HealthRecord, *, now: datetime) -> float | None:
    """Returns the seconds until a card may return or an error counts, or None."""
    active = [fault for fault in health.faults.values() if fault.quiet_since and not fault.cleared]
    ends = [_moment(fault.quiet_since, now) + timedelta(seconds=fault.quiet_seconds) for fault in active]
    ends += [since + CONFIRMATION for since in health.suspected.values()]
    waits = [(end - now).total_seconds() for end in ends if end > now]
    return min(waits, default=None)


def faults_of(health: HealthRecord) -> list[CardFault]:
    return sorted(health.faults.values(), key=lambda fault: fault.uuid)
