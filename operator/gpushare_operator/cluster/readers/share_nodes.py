"""What the operator knows of a GPUShareNode."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import Any, TypeVar

import msgspec

from gpushare_core.api.conditions import Condition, ConditionState
from gpushare_core.api.names import REGISTERED, VERSION_LABEL
from gpushare_core.api.share_node import MemoryTotals, UnitTotals
from gpushare_core.audit import readers as audited
from gpushare_core.audit.auditor import status_differences
from gpushare_core.placement.modes.table import class_of_lock
from gpushare_core.placement.quantity import format_memory, parse_memory
from gpushare_core.placement.units import parse_node_unit, part_of
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import HASH_ANNOTATION
from gpushare_operator.cluster.object_parts import is_deleting, read_time, true_condition
from gpushare_operator.cluster.objects import Excess, ShareNodeObject

Totals = TypeVar("Totals", UnitTotals, MemoryTotals)


def read_share_node(body: Json) -> ShareNodeObject:
    metadata, status = body["metadata"], body.get("status") or {}
    cards = status.get("cards", ())
    sick = [card for card in cards if card.get("health") == "Unhealthy"]
    return ShareNodeObject(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        deleting=is_deleting(body),
        owners=tuple(owner["uid"] for owner in metadata.get("ownerReferences", ())),
        spec=_shared_spec(msgspec.json.encode(dict(body.get("spec") or {}))),
        spec_hash=intern((metadata.get("annotations") or {}).get(HASH_ANNOTATION, "")),
        observed_generation=status.get("observedGeneration", 0),
        conditions=_conditions_by_type(status),
        registered_since=_registered_since(status),
        unit=intern(str(status.get("memoryUnit", ""))),
        dialect=intern(str(status.get("dialect", ""))),
        units=_totals(UnitTotals, status.get("units")),
        resources=_resources(status.get("resources")),
        memory=_totals(MemoryTotals, status.get("memory")),
        cards=len(cards),
        unhealthy_cards=len(sick),
        sick_cards=tuple(f"card {card.get('index', 0)} ({card.get('uuid', '')})" for card in sick),
        closed_cards=tuple(sorted(card.get("index", 0) for card in cards if _is_closed(card))),
        card_indices=tuple(sorted(card.get("index", 0) for card in cards)),
        excesses=tuple(_excesses(body.get("spec") or {}, status)),
        differences=tuple(status_differences(audited.read_share_node(body))),
        version=intern((metadata.get("labels") or {}).get(VERSION_LABEL, "")),
        plugin_version=intern(str(status.get("pluginVersion", ""))),
    )


def _excesses(spec: Json, status: Json) -> Iterator[Excess]:
    """Most containers keep to what they asked for: only the others are kept. A pod that the API server does
    not have cannot be evicted."""
    for card in status.get("cards", ()):
        for share in card.get("pods") or ():
            text = "" if share.get("orphaned") else share.get("exceededSince")
            if text and (since := read_time(text)):
                yield Excess(
                    namespace=str(share.get("namespace", "")),
                    pod=str(share.get("name", "")),
                    uid=str(share.get("uid", "")),
                    container=str(share.get("container", "")),
                    card=str(card.get("uuid", "")),
                    since=since,
                    used=str(share.get("usedMemory", "")),
                    asked=_memory_asked(share, card, unit=str(status.get("memoryUnit", "")), spec=spec),
                )


def _memory_asked(share: Json, card: Json, *, unit: str, spec: Json) -> str:
    """Returns what the units of ``share`` are in memory, for people; empty where that is not known."""
    try:
        parsed, lock = parse_node_unit(unit), class_of_lock(str(card.get("lock", "")))
        part = part_of(parsed, lock) if lock else parsed.parts[0]
        shared = parse_memory(card.get("memory", "")) - parse_memory(spec.get("reservedMemory", "0"))
        return format_memory(part.memory_of(int(share.get("units", 0)), max(0, shared))) if part else ""
    except (ValueError, TypeError):
        return ""


def _registered_since(status: Json) -> datetime | None:
    registered = true_condition(status, REGISTERED)
    return read_time(registered.get("lastTransitionTime")) if registered else None


def _is_closed(card: Json) -> bool:
    return card.get("health") == "Unhealthy" or bool(card.get("cordoned"))


@lru_cache(maxsize=64)
def _shared_spec(encoded: bytes) -> Json:
    """Returns the same object for all nodes of a rule: nobody may change it."""
    spec: Json = msgspec.json.decode(encoded)
    return spec


def _totals(model: type[Totals], body: Any) -> Totals:
    """Returns zeros for what keeps to no schema: one object must not keep the others from being read."""
    totals: Totals = _shared_totals(model, msgspec.json.encode(body or {}))
    return totals


@lru_cache(maxsize=4096)
def _shared_totals(model: type[Totals], encoded: bytes) -> Totals:
    """Returns the same object for nodes that have the same: nobody may change it."""
    try:
        return msgspec.json.decode(encoded, type=model)
    except msgspec.ValidationError:
        return model()


def _resources(body: Any) -> dict[str, UnitTotals]:
    """Returns the totals of each class in the order in which the plugin lists them."""
    given = [totals for totals in body or () if isinstance(totals, dict)]
    return {str(totals.get("resource", "")): _totals(UnitTotals, totals) for totals in given}


def _conditions_by_type(status: Json) -> Mapping[str, ConditionState]:
    """Raises nothing: what the schema lets pass parses."""
    stored = msgspec.convert(status.get("conditions", ()), tuple[Condition, ...])
    return _shared_conditions(tuple((one.type, one.status, one.reason, one.message) for one in stored))


@lru_cache(maxsize=1024)
def _shared_conditions(told: tuple[tuple[str, str, str, str], ...]) -> Mapping[str, ConditionState]:
    """Returns the same objects for nodes that say the same: nobody may change them."""
    return {condition[0]: ConditionState(*condition) for condition in told}
