"""Which cards are sick, and when they return: by proof.

NVML answers as ever after an Xid, so that an answer proves nothing. A sick card returns when the driver
reports no repair that is due and a quiet time has passed without anything new, or when an administrator says
so. Who falls sick again soon has to be quiet for twice as long. All of it is in the status: a restart of the
plugin brings no sick card back.
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
"""Reason: the card answers the questions with an error."""
CARD_GONE = "CardGone"
"""Reason: it is not found, and pods have units of it."""
_NEEDS_CARD = frozenset({CARD_ERROR, CARD_GONE})
"""No word of an administrator makes such a card usable."""

CONFIRMATION = timedelta(seconds=1)
"""For so long a card has to answer with an error that may pass, until it is sick."""
ANSWER_QUIET = timedelta(seconds=10)
"""Quiet time at most of a card that answered with errors and nothing else: its answers are a proof."""
MAX_QUIET = timedelta(days=1)
FORGOTTEN = timedelta(days=1)
"""After so long in health a new fault is the first one again; a card that is gone for so long has none."""
STORM = timedelta(seconds=10)
"""Within it the same event again is none, and of a fault that lasts another one: there can be thousands a
second, of several kinds. One that asks for a longer quiet time than the fault has is always one."""

Faults = Mapping[str, CardFault]
"""By the card's UUID; also of cards that have returned, until that is forgotten."""


@dataclass(frozen=True, slots=True)
class HealthRecord:
    """What is known of the health of a node's cards."""

    faults: Faults = field(default_factory=dict)
    suspected: Mapping[str, datetime] = field(default_factory=dict)
    """Card UUID -> since when it answers with an error that may pass."""
    missing: Mapping[str, datetime] = field(default_factory=dict)
    """UUID of a card with a fault -> since when it is not found."""


@dataclass(frozen=True, slots=True)
class _Symptom:
    reason: str
    message: str
    stands: bool = True
    """Whether it is there now, and not an event that was."""
    quiet: timedelta | None = None
    """For how long the card has to be quiet at most; None: as the policy says."""


def recorded_health(share_node: GPUShareNode) -> HealthRecord:
    """Returns what the plugin knew before it was restarted."""
    return HealthRecord({fault.uuid: fault for fault in share_node.status.faults})


def examine(
    before: HealthRecord, reading: Reading, share_node: GPUShareNode, *, now: datetime
) -> HealthRecord:
    """Returns what is known of the cards after a ``reading``."""
    rules = share_node.spec.devices.health
    suspected, missing = _suspected(before, reading, now), _missing(before, reading, now)
    faults = {}
    for uuid in _named(before, reading, share_node):
        symptoms = [*_symptoms(uuid, reading, rules, share_node)]
        fault = _cleared(before.faults.get(uuid), share_node, now)
        if _is_only_suspected(symptoms, suspected.get(uuid), now):
            symptoms = [each for each in symptoms if each.reason != CARD_ERROR]
        elif fault and _is_proven(uuid, reading) and not any(each.stands for each in symptoms):
            fault = _quiet(fault, now) if symptoms else _returned_if_due(_quiet(fault, now), now)
        for symptom in symptoms:
            quiet = _quiet_time(fault, symptom, rules)
            if fault and _is_nothing_new(fault, symptom, quiet=quiet, now=now):
                fault = _in_its_words(fault, symptom)
            else:
                fault = _fallen(uuid, fault, symptom, quiet=quiet, now=now)
        if fault and not _is_told_of(uuid, reading):
            fault = _not_quiet(fault)
        stands = any(each.stands for each in symptoms)
        if fault and (stands or not _is_forgotten(fault, missing.get(uuid), now)):
            faults[uuid] = fault
    return HealthRecord(faults, suspected, missing)


def _named(before: HealthRecord, reading: Reading, share_node: GPUShareNode) -> list[str]:
    """Returns also whom an event names that is not found any more; not whom people have taken out."""
    cards = (card.uuid for card in reading.cards)
    taken_out = {each.uuid for each in reading.left_out if each.healthy}
    events = (event.uuid for event in reading.events if event.uuid and event.uuid not in taken_out)
    return [*dict.fromkeys([*before.faults, *cards, *events, *_held(share_node)])]


def _held(share_node: GPUShareNode) -> list[str]:
    return [card.uuid for card in share_node.status.cards if card.pods]


def _suspected(before: HealthRecord, reading: Reading, now: datetime) -> dict[str, datetime]:
    """Returns the cards that answer with an error that may pass, and since when."""
    if reading.problem:
        return dict(before.suspected)
    return {
        card.uuid: before.suspected.get(card.uuid, now)
        for card in reading.cards
        if card.passing and not card.healthy
    }


def _missing(before: HealthRecord, reading: Reading, now: datetime) -> dict[str, datetime]:
    """Returns the cards with a fault that are not found, and since when: as far as this process knows, and
    none where the driver cannot tell."""
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
    """Yields events first, then the gravest of what stands. Of a driver that does not answer only events."""
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
    """Yields why a card of which pods have units is not to be shared; nothing where people want it so."""
    out = next((each for each in reading.left_out if each.uuid == uuid), None)
    if out is None:
        yield _Symptom(CARD_GONE, GONE, quiet=ANSWER_QUIET)
    elif not out.healthy:
        yield _Symptom(CARD_ERROR, out.reason, quiet=ANSWER_QUIET)


def _is_nothing_new(fault: CardFault, symptom: _Symptom, *, quiet: timedelta, now: datetime) -> bool:
    """``quiet``: for how long the card has to be quiet after the symptom."""
    if symptom.stands:  # also where an administrator has cleared it although it stands
        return fault.reason == symptom.reason and not fault.quiet_since
    if fault.cleared or quiet > timedelta(seconds=fault.quiet_seconds):
        return False
    is_fresh = _is_in_storm(fault.since, now)  # then the words of each count
    is_known = fault.reason == symptom.reason or not fault.quiet_since or not is_fresh
    return is_known and _is_in_storm(fault.last_seen, now)


def _is_in_storm(stamp: str, now: datetime) -> bool:
    """Nothing is that comes after a time that cannot be read, or before it: the clock was set back."""
    moment = read_rfc3339(stamp)
    return moment is not None and timedelta() <= now - moment < STORM


def _in_its_words(fault: CardFault, symptom: _Symptom) -> CardFault:
    """What stands may ask for something else than before: that is the same fault."""
    if fault.reason != symptom.reason or fault.message == symptom.message:
        return fault
    return msgspec.structs.replace(fault, message=symptom.message)


def _fallen(
    uuid: str, before: CardFault | None, symptom: _Symptom, *, quiet: timedelta, now: datetime
) -> CardFault:
    """Returns a new fault, or the one ``before`` where that lasts still, with what is new."""
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
    """Returns how often a card with a symptom now has fallen sick again."""
    if before is None:
        return 0
    return before.relapses + 1 if before.cleared else before.relapses


def _quiet_time(before: CardFault | None, symptom: _Symptom, rules: CardHealth) -> timedelta:
    """Twice as long with every relapse; what comes to a fault that lasts makes it no shorter."""
    first = timedelta(seconds=rules.quiet_seconds)
    if symptom.quiet:
        first = min(first, symptom.quiet)
    grown: timedelta = first * 2 ** min(_relapses(before), 20)
    quiet = min(grown, max(first, MAX_QUIET))
    lasting = before.quiet_seconds if before and not before.cleared else 0
    return max(quiet, timedelta(seconds=lasting))


def _is_told_of(uuid: str, reading: Reading) -> bool:
    """What is not there, or of a driver that does not answer, is not quiet."""
    return reading.problem is None and _card(uuid, reading) is not None


def _not_quiet(fault: CardFault) -> CardFault:
    return fault if fault.cleared else msgspec.structs.replace(fault, quiet_since="")


def _is_proven(uuid: str, reading: Reading) -> bool:
    """Whether all is known of what stands."""
    card = _card(uuid, reading)
    return reading.problem is None and card is not None and not card.unproven


def _quiet(fault: CardFault, now: datetime) -> CardFault:
    """Returns the fault of a card of which nothing stands."""
    since = _moment(fault.quiet_since, now) if fault.quiet_since else now
    if since >= now:  # it is quiet from now on; or the clock was set back
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
    """Returns the fault, cleared where people name it as it is known now."""
    if fault is None or fault.cleared or (fault.reason in _NEEDS_CARD and not fault.quiet_since):
        return fault
    if clearance(fault) in _clearances(share_node):
        return _returned(fault, ClearedBy.ADMINISTRATOR, now)
    return fault


def clearance(fault: CardFault) -> str:
    """Returns the word by which an administrator clears the fault, and no later one."""
    return f"{fault.uuid}@{fault.last_seen}"


def _clearances(share_node: GPUShareNode) -> list[str]:
    return share_node.metadata.annotations.get(CLEAR_FAULT_ANNOTATION, "").replace(",", " ").split()


def _is_forgotten(fault: CardFault, missing_since: datetime | None, now: datetime) -> bool:
    """A card that was taken out is forgotten, too; not one that is gone for a moment, as in a reset."""
    if fault.cleared and fault.quiet_since and now - _moment(fault.cleared, now) >= FORGOTTEN:
        return True
    is_old = now - _moment(fault.last_seen, now) >= FORGOTTEN
    return is_old and missing_since is not None and now - missing_since >= FORGOTTEN


def _moment(text: str, otherwise: datetime) -> datetime:
    return read_rfc3339(text) or otherwise


def judged(reading: Reading, health: HealthRecord) -> Reading:
    """Returns ``reading`` with the health that its cards have by all that is known."""
    return replace(reading, cards=tuple(_judged(card, reading, health) for card in reading.cards))


def _judged(card: PhysicalCard, reading: Reading, health: HealthRecord) -> PhysicalCard:
    fault = health.faults.get(card.uuid)
    if fault and not fault.cleared:
        return replace(card, healthy=False, reason=fault_text(fault))
    if reading.problem is None and card.uuid in health.suspected:
        return replace(card, healthy=True, reason="")
    return card


def fault_text(fault: CardFault) -> str:
    """Returns what is wrong and when the card returns, for people."""
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
    """Returns the seconds until a card may return, or an error counts; None where nothing is waited for."""
    active = [fault for fault in health.faults.values() if fault.quiet_since and not fault.cleared]
    ends = [_moment(fault.quiet_since, now) + timedelta(seconds=fault.quiet_seconds) for fault in active]
    ends += [since + CONFIRMATION for since in health.suspected.values()]
    waits = [(end - now).total_seconds() for end in ends if end > now]
    return min(waits, default=None)


def faults_of(health: HealthRecord) -> list[CardFault]:
    """Returns what the status says of them, in a steady order."""
    return sorted(health.faults.values(), key=lambda fault: fault.uuid)
