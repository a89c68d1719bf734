"""What core answers to the questions in the table; ``scheduler/internal/cases`` answers them, too."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

import msgspec

from gpushare_core.allocation_annotation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    encode_allocation,
)
from gpushare_core.dialects.annotation_room import lack_of_room, size_beside_ours, worst_size
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.modes.table import mode_dividing, unservable_reason
from gpushare_core.placement.node_ranking import Key
from gpushare_core.placement.quantity import read_amount, sum_amounts
from gpushare_core.placement.requests import PodRequest, read_request
from gpushare_core.placement.units import convert_units, parse_node_unit, parse_unit
from gpushare_core.scheduling.fit.candidates import scores
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.extended_resources import OurResources
from gpushare_core.scheduling.ledger.fit_index import Answer, Fit
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.ledger.node_ledger import CardChoice
from gpushare_core.scheduling.ledger.unfit_reason import UnfitReason
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod
from gpushare_core.scheduling.objects.legacy_pods import read_claims
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binding import allocation_of, share_binding

MAX_NUMBER = 2**48
"""The greatest whole number that Go reads, larger ones are read as this: no card has as many units."""
LARGE = 2**40
"""From here on numbers count as the same, also those that were larger in another unit."""
MAX_TOTAL = 2**63 - 1
_OF_A_PARSER = re.compile("its GPUShareNode cannot be read: .*(malformed|truncated)", re.S)
_LONG_NUMBER = re.compile("[0-9]{13,}")


def answer(case: Json) -> Any:
    """Returns the answer to ``case``, as plain JSON."""
    return json.loads(json.dumps(_KINDS[case["kind"]](case["given"])))


def normal(told: Any) -> Any:
    """Returns an answer without what the two engines may say in other words: how JSON is malformed, and
    numbers that no card has."""
    if isinstance(told, dict):
        return {key: normal(value) for key, value in told.items()}
    if isinstance(told, list):
        return [normal(value) for value in told]
    if isinstance(told, int) and not isinstance(told, bool):
        return max(-LARGE, min(told, LARGE))
    if not isinstance(told, str):
        return told
    if told.startswith("insufficient GPU"):
        return _LONG_NUMBER.sub("many", told)
    return "its GPUShareNode is malformed" if _OF_A_PARSER.match(told) else told


def _quantity(texts: list[str]) -> Json:
    return {"sum": sum_amounts(texts), "ceils": [ceil(read_amount(text)) for text in texts]}


def _unit(text: str) -> Json | None:
    try:
        unit = parse_node_unit(text)
    except ValueError:
        return None

    def converted(first: str, second: str) -> list[Any]:
        units = convert_units(7, parse_unit(first).meaning, parse_unit(second).meaning)
        return [0, False] if units is None else [min(units, MAX_NUMBER), True]

    conversions = []
    for part in unit.parts:
        others = (part.text, "3Gi"), ("3Gi", part.text), (part.text, "1/3 card")
        conversions += [converted(*pair) for pair in others]
    return {
        "mode": mode_dividing(unit).name,
        "units": [f"{part.resource} {part.text}" for part in unit.parts],
        "conversions": conversions,
    }


def _request(given: Json) -> Json:
    ours = OurResources()
    ours.set_node("n", given.get("served", ()))
    request = read_request(given["pod"], ours.names)
    worst = worst_size(request)
    return {
        "parts": [
            {
                "name": part.name,
                "class": part.resource,
                "total": min(part.total, MAX_TOTAL),
                "containers": [*map(list, part.containers.items())],
                "together": part.by_container,
            }
            for part in request.resources
        ],
        "lending": _lending(given["pod"], request),
        "cpu": request.cpu,
        "memory": request.memory,
        "unservable": unservable_reason(request),
        "worst": worst,
        "lack": lack_of_room(given.get("size", 0), worst),
    }


def _lending(spec: Json, request: PodRequest) -> list[str]:
    names = [container["name"] for container in spec.get("initContainers") or ()]
    found = [name for name in dict.fromkeys(names) if name in request.init_containers]
    assert len(found) == len(request.init_containers)
    return found


def _annotation(given: Json) -> Json:
    try:
        found = decode_allocation(given["text"], uid=given["uid"])
    except MalformedAllocationError as error:
        return {"error": "not an allocation" if error.__cause__ else str(error)}
    small = _with_small_numbers(found)
    return {
        "node": found.node,
        "uid": found.uid,
        "at": found.at,
        "unit": found.unit,
        "class": found.resource,
        "containers": [[name, _shares(shares)] for name, shares in small.containers.items()],
        "cards": _shares(small.cards),
        "cpu": found.cpu,
        "memory": found.memory,
        "others": [*map(list, found.other_units.items())],
        "held": _shares(small.held()),
        "written": encode_allocation(small),
    }


def _with_small_numbers(allocation: Allocation) -> Allocation:
    containers = {name: dict(_shares(shares)) for name, shares in allocation.containers.items()}
    return replace(allocation, containers=containers, cards=dict(_shares(allocation.cards)))


def _shares(shares: Mapping[str, int]) -> list[list[Any]]:
    return [[card, min(units, MAX_NUMBER)] for card, units in shares.items()]


def _claim(given: Json) -> Json:
    claims, problems = read_claims(given["annotations"])
    shares = {name: claim.shares(given["total"]) for name, claim in claims.items()}
    return {
        "claims": {name: [*map(list, held.items())] for name, held in shares.items()},
        "problems": len(problems),
    }


class World:
    """A ledger that hears of GPUShareNodes and pods as the extender's does."""

    def __init__(self) -> None:
        self.ledger = Ledger()

    def set_share(self, written: Json | str) -> str:
        """Returns the name; empty where not even that can be read."""
        raw = written if isinstance(written, str) else json.dumps(written)
        try:
            share_node = read_share_node(raw.encode())
        except msgspec.DecodeError:
            return ""
        self.ledger.set_share_node(share_node)
        return share_node.name

    def set_pod(self, pod: Json) -> None:
        self.ledger.set_pod(_update(pod))


def _update(pod: Json) -> PodUpdate:
    """As the extender's watch of metadata, and for pods of replaced systems its look at the whole pod."""
    metadata = {
        "name": pod["uid"],
        "namespace": "d",
        "uid": pod["uid"],
        "annotations": pod.get("annotations"),
    }
    update = read_pod(json.dumps({"metadata": metadata}).encode())
    if update.legacy is None:
        return update
    request = read_request(pod.get("spec") or {}, RESOURCES)
    legacy = replace(update.legacy, node=pod["node"], request=request)
    return PodUpdate(update.uid, update.holder, update.message, legacy)


def _cluster(given: Json) -> Json:
    world = World()
    names = [*dict.fromkeys(name for raw in given["nodes"] if (name := world.set_share(raw)))]
    for pod in given.get("pods", ()):
        world.set_pod(pod)
    return {
        "nodes": {name: _described(world.ledger, name) for name in names},
        "asks": [_ask(world.ledger, names, ask, given) for ask in given.get("asks", ())],
    }


def _described(ledger: Ledger, name: str) -> Json | None:
    node, share_node = ledger.node(name), ledger.share_node(name)
    if node is None or share_node is None:
        return None
    rooms = [[offered.name, offered.mode.resource, *offered.room] for offered in ledger.room(name) or ()]
    cards = {
        resource: [
            [card.uuid, card.index, card.units, card.allocated, card.healthy, card.lockable]
            for card in node.cards(served)
        ]
        for resource, served in share_node.resources.items()
    }
    return {
        "room": rooms,
        "cards": cards,
        "closed": share_node.closed_reason,
        "preempts": share_node.preempts,
    }


def _ask(ledger: Ledger, names: list[str], ask: Json, given: Json) -> Json:
    request = read_request(ask["spec"], ledger.resources)
    reason = unservable_reason(request) or lack_of_room(
        size_beside_ours(ask.get("annotations") or {}), worst_size(request)
    )
    if reason or not request.resources:
        return {"reason": reason}
    if ledger.holder(ask["uid"]):
        held = filter_nodes(ledger, names, uid=ask["uid"], request=request)
        return {"reason": "", "held": {name: held.unresolvable.get(name, "") for name in names}}
    answers = dict(zip(names, ledger.answers(names, request), strict=True))
    result = filter_nodes(ledger, names, uid=ask["uid"], request=request)
    return {
        "reason": "",
        "sentences": result.failed | result.unresolvable,
        "nodes": {
            name: _told(ledger, name, found, ask["uid"], request, given) for name, found in answers.items()
        },
        "scores": {name: score for name, score in scores(answers).items() if isinstance(answers[name], Fit)},
    }


def _told(ledger: Ledger, name: str, found: Answer, uid: str, request: PodRequest, given: Json) -> Json:
    node, gone = ledger.node(name), given.get("gone", ())
    assert node is not None
    told = (
        _bound(ledger, name, found, uid, request, given.get("now", 0))
        if isinstance(found, Fit)
        else _refused(found, request)
    )
    return told | {"after": _chosen(node.choose_together(request, gone=gone))}


def _refused(reason: UnfitReason, request: PodRequest) -> Json:
    by_container = {part.name: part.by_container for part in request.resources}
    return {
        "words": reason.message + by_container.get(reason.resource, ""),
        "kind": reason.kind,
        "resolvable": reason.resolvable,
        "resource": reason.resource,
        "nearness": reason.nearness,
    }


def _bound(ledger: Ledger, name: str, fit: Fit, uid: str, request: PodRequest, microseconds: int) -> Json:
    pod = PodReference("d", uid, uid)
    holder, choices = ledger._chosen(pod, name, request, ())
    share_node = ledger.share_node(name)
    assert isinstance(share_node, ShareNode)
    now = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    allocation = allocation_of(holder, request, share_node, now=now)
    binding = share_binding(pod, allocation, share_node, now=now)
    return {
        "key": _padded(fit.key),
        "chosen": _chosen(choices),
        "reasons": [choice.reason for choice in choices],
        "annotations": binding.annotations,
        "room": binding.room,
    }


def _padded(key: Key) -> list[int]:
    return [*map(int, key), *[0] * (6 - len(key))]


def _chosen(choices: Iterable[CardChoice]) -> list[Any]:
    return [[choice.asked.name, [*map(list, choice.units.items())]] for choice in choices]


def _history(given: Json) -> list[Json]:
    world, told = World(), []
    for step in given["steps"]:
        did = _take(world, step)
        nodes = {
            name: {
                "free": _described(world.ledger, name),
                "unreleased": sorted(world.ledger.unreleased(name)),
            }
            for name in given["nodes"]
        }
        told.append({"did": did, "nodes": nodes})
    return told


def _take(world: World, step: Json) -> Any:
    ledger, now = world.ledger, step.get("at", 0) / 1000
    match step:
        case {"share": written}:
            world.set_share(written)
        case {"drop": name}:
            ledger.drop_share_node(name)
        case {"pod": pod}:
            world.set_pod(pod)
        case {"gone": uid}:
            ledger.pod_deleted(uid, now=now)
        case {"expire": _}:
            ledger.free_unreleased(now=now)
        case {"release": uid}:
            ledger.release(uid)
        case {"reserve": ask}:
            return _reserve(ledger, ask)
    return None


def _reserve(ledger: Ledger, ask: Json) -> Any:
    request = read_request(ask["spec"], ledger.resources)
    try:
        ledger.reserve(PodReference("d", ask["uid"], ask["uid"]), node=ask["node"], request=request)
    except DoesNotFitError:
        return None
    return _chosen(ledger.reservations[ask["uid"]].choices)


_KINDS: dict[str, Callable[[Any], Any]] = {
    "quantity": _quantity,
    "unit": _unit,
    "request": _request,
    "annotation": _annotation,
    "claim": _claim,
    "cluster": _cluster,
    "history": _history,
}
