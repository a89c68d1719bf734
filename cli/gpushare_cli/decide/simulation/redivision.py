"""GPUShareNodes as they would be: divided into another unit, with a card less, or without some pods.

Each function takes the JSON of one and returns another, which the ledger reads as any.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from gpushare_cli.decide.simulation.policy_change import ClassUnits
from gpushare_core.api.share_node import LenientShareNode
from gpushare_core.placement.modes.table import class_of_lock, mode_dividing
from gpushare_core.placement.quantity import format_memory, parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import (
    MemoryUnit,
    MixedUnit,
    NodeUnit,
    convert_units,
    parse_node_unit,
    part_of,
    with_memory,
)
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

_CLASSES = frozenset(map(str, ResourceClass))


def readable_share_node(raw: msgspec.Raw | bytes) -> Json | None:
    """Returns a GPUShareNode whose fields have the types that the functions here expect; None for another."""
    try:
        msgspec.json.decode(raw, type=LenientShareNode)
        read: Json = msgspec.json.decode(raw)
    except UNREADABLE_JSON:
        return None
    return read


def readable_share_nodes(raws: Iterable[msgspec.Raw | bytes]) -> list[Json]:
    return [read for raw in raws if (read := readable_share_node(raw)) is not None]


def unit_in_force(share_node: Json) -> NodeUnit | None:
    """Returns what the cards are divided into now; None where that is not known."""
    try:
        return parse_node_unit(str(_status(share_node).get("memoryUnit", "")))
    except ValueError:
        return None


def with_memory_unit(share_node: Json, unit: MemoryUnit) -> Json:
    """Returns the GPUShareNode with units of memory of this size, and what pods hold in these: the same
    bytes, rounded up. Nodes that share no memory stay as they are."""
    present = unit_in_force(share_node)
    if present is None or part_of(present, ResourceClass.MEMORY) is None:
        return share_node
    spec = {**(share_node.get("spec") or {}), "memoryUnit": unit.text}
    return divided({**share_node, "spec": spec}, with_memory(present, unit))


def divided(share_node: Json, unit: NodeUnit) -> Json:
    """Returns the GPUShareNode with its cards divided into ``unit``; what pods hold is converted."""
    status, present = _status(share_node), unit_in_force(share_node)
    reserved = _bytes((share_node.get("spec") or {}).get("reservedMemory"))
    cards = [_divided_card(card, present, unit, reserved) for card in status.get("cards") or ()]
    return {**share_node, "status": {**status, "memoryUnit": unit.text, "cards": cards}}


def _divided_card(card: Json, present: NodeUnit | None, unit: NodeUnit, reserved: int) -> Json:
    lock = class_of_lock(str(card.get("lock", "")))
    memory = _bytes(card.get("memory"))
    parts = {part.resource: part.units_in(memory, reserved=reserved) for part in unit.parts}
    seen_as = lock if lock in parts else next(iter(parts))
    pods = [
        {**pod, "units": _converted(int(pod.get("units", 0)), present, unit, lock)}
        for pod in card.get("pods") or ()
    ]
    named = sum(int(pod.get("units", 0)) for pod in card.get("pods") or ())
    allocated = int(card.get("allocatedUnits", 0))
    is_sum = named == allocated
    converted = sum(pod["units"] for pod in pods) if is_sum else _converted(allocated, present, unit, lock)
    offers = {"offers": {str(resource): units for resource, units in parts.items()}}
    return {
        **{key: value for key, value in card.items() if key != "offers"},
        **(offers if isinstance(unit, MixedUnit) else {}),
        "units": parts[seen_as],
        "allocatedUnits": converted,
        "pods": pods,
    }


def _converted(units: int, present: NodeUnit | None, unit: NodeUnit, lock: ResourceClass | None) -> int:
    """Returns the same where the two are of different classes: only nodes without pods change their mode."""
    if present is None:
        return units
    resource = lock or present.parts[0].resource
    before, after = part_of(present, resource), part_of(unit, resource)
    converted = convert_units(units, before.meaning, after.meaning) if before and after else None
    return units if converted is None else converted


def without_pods(share_node: Json, uids: Collection[str]) -> Json:
    """Returns the GPUShareNode as its plugin will report it when these pods are gone."""
    status = _status(share_node)
    cards = [_card_without(card, uids) for card in status.get("cards") or ()]
    return {**share_node, "status": {**status, "cards": cards}}


def _card_without(card: Json, uids: Collection[str]) -> Json:
    pods = card.get("pods") or []
    staying = [pod for pod in pods if pod.get("uid") not in uids]
    if len(staying) == len(pods):
        return card
    allocated, named = int(card.get("allocatedUnits", 0)), _sum(pods)
    left = (
        max(0, allocated - (named - _sum(staying))) if named <= allocated else min(allocated, _sum(staying))
    )
    return {**card, "pods": staying, "allocatedUnits": left, "lock": card.get("lock", "") if left else ""}


def _sum(pods: Collection[Mapping[str, Any]]) -> int:
    return sum(int(pod.get("units", 0)) for pod in pods)


def with_cordoned(share_node: Json, cards: Collection[str]) -> Json:
    """Returns the GPUShareNode with these cards (UUIDs) closed to new pods."""
    status = _status(share_node)
    closed = [
        {**card, "cordoned": True} if card.get("uuid") in cards else card
        for card in status.get("cards") or ()
    ]
    return {**share_node, "status": {**status, "cards": closed}}


def simulated_share_node(name: str, spec: Json, unit: NodeUnit) -> Json:
    """Returns the GPUShareNode of a node that gets simulated cards; nobody knows other cards before a plugin
    has seen them."""
    kinds = (spec.get("devices") or {}).get("simulated") or ()
    sizes = [(kind, _bytes(kind.get("memory"))) for kind in kinds for _ in range(int(kind.get("count", 0)))]
    cards = [
        {
            "index": index,
            "uuid": f"{name}-card-{index}",
            "memory": format_memory(memory),
            "units": 0,
            "health": "Healthy",
            "computeScore": kind.get("computeScore", 100),
            "numaNode": kind.get("numaNode", 0),
        }
        for index, (kind, memory) in enumerate(sizes)
    ]
    registered = {"type": "Registered", "status": "True"}
    status = {
        "memoryUnit": unit.text,
        "dialect": spec.get("dialect", ""),
        "cards": cards,
        "conditions": [registered],
    }
    return divided({"metadata": {"name": name}, "spec": spec, "status": status}, unit)


def total_units(share_node: Json) -> dict[str, int]:
    """Returns the class -> units that the cards have, all of them; of mode Mixed each class as if free."""
    unit = unit_in_force(share_node)
    totals: dict[str, int] = {}
    for card in _status(share_node).get("cards") or () if unit else ():
        units = card.get("offers") or {str(unit.parts[0].resource): card.get("units", 0)} if unit else {}
        for resource, amount in units.items():
            if resource not in _CLASSES:
                continue
            totals[resource] = totals.get(resource, 0) + int(amount)
    return totals


def mode_of(share_node: Json) -> str:
    """Returns the mode in force, else the one asked for."""
    unit = unit_in_force(share_node)
    return mode_dividing(unit).name if unit else str((share_node.get("spec") or {}).get("mode", ""))


def _status(share_node: Json) -> Json:
    status: Json = share_node.get("status") or {}
    return status


def _bytes(quantity: object) -> int:
    """Returns 0 for a quantity that cannot be read."""
    try:
        return parse_memory(str(quantity or "0"))
    except ValueError:
        return 0


def units_of(share_nodes: Iterable[Json]) -> list[ClassUnits]:
    """Returns the units of all cards, by class and unit."""
    totals: Counter[tuple[str, str]] = Counter()
    for share_node in share_nodes:
        unit = unit_in_force(share_node)
        for resource, units in total_units(share_node).items():
            part = part_of(unit, ResourceClass(resource)) if unit else None
            totals[resource, part.text if part else ""] += units
    return [
        ClassUnits(resource=resource, unit=unit, units=units)
        for (resource, unit), units in sorted(totals.items())
    ]
