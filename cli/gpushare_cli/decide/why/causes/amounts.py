"""Amounts that say something else than was meant: bytes for units, requests without limits, nothing."""

import re
from collections.abc import Iterator
from math import ceil

from gpushare_cli.decide.scheduling.written_pod import WrittenContainer, written_pod
from gpushare_cli.decide.why.asked import (
    AskedAmount,
    asked_amounts,
    unit_bytes,
    units_of,
)
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import listed, memory_text
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import MIB, read_amount
from gpushare_core.placement.requests import ResourceClass, ResourceRequest

_BYTES = re.compile(r"[0-9.]+([kMGTPE]|[KMGTPE]i)")
"""An amount as people write bytes."""


def written_amounts(situation: PodSituation) -> Iterator[Finding]:
    """Looks at each amount of our resources as it is written."""
    for container in written_pod(situation.pod).spec.all_containers:
        for name in dict.fromkeys((*container.limits, *container.requests)):
            if name in RESOURCES and (finding := _written(situation, container, name)):
                yield finding


def _written(situation: PodSituation, container: WrittenContainer, name: str) -> Finding | None:
    limit, request = container.limits.get(name), container.requests.get(name)
    if limit is None:
        return _without_limit(container, name, str(request))
    text, amount = str(limit), read_amount(limit)
    if text.startswith("-"):
        return _negative(container, name, text)
    if request is not None and read_amount(request) != amount:
        return _different(container, name, text, str(request))
    if amount == 0:
        return _nothing(container, name)
    if amount.denominator != 1:
        return _fraction(container, name, text)
    return _bytes(situation, AskedAmount(container.name, name, text)) if _BYTES.fullmatch(text) else None


def _without_limit(container: WrittenContainer, name: str, amount: str) -> Finding:
    return decisive(
        "NoLimit",
        (
            f"Container {container.name} has {name} in its requests and not in its limits: Kubernetes refuses"
            " such a pod."
        ),
        f"Write {name}: {amount} in resources.limits; in requests it can be left out.",
    )


def _different(container: WrittenContainer, name: str, limit: str, request: str) -> Finding:
    return decisive(
        "LimitDiffers",
        (
            f"Container {container.name} has {request} of {name} in its requests and {limit} in its limits:"
            " Kubernetes refuses such a pod."
        ),
        f"Remove {name} from resources.requests: the limit counts.",
    )


def _nothing(container: WrittenContainer, name: str) -> Finding:
    return noted(
        "AsksForNothing",
        f"Container {container.name} asks for 0 of {name}: it gets no card.",
        f"If it needs a card, write how many units, such as {name}: 1.",
    )


def _negative(container: WrittenContainer, name: str, amount: str) -> Finding:
    return decisive(
        "Negative",
        f"Container {container.name} asks for {amount} of {name}, and an amount is not below 0.",
        f"Write how many units it needs, such as {name}: 1.",
    )


def _fraction(container: WrittenContainer, name: str, amount: str) -> Finding:
    finer = " For finer shares a smaller memoryUnit in the policy helps, such as 256Mi."
    is_memory = RESOURCES[name] is ResourceClass.MEMORY
    return decisive(
        "NotWhole",
        f"Container {container.name} asks for {amount} of {name}, which is counted in whole units.",
        f"Write a whole number, such as {name}: 1.{finer if is_memory else ''}",
    )


def _bytes(situation: PodSituation, asked: AskedAmount) -> Finding:
    units, one = int(read_amount(asked.amount)), unit_bytes(situation, asked.resource)
    advice = f"Write how many units it needs, such as {asked.resource}: 1."
    if one:
        of_what = units_of(situation, asked.resource)[0]
        advice = f"Write {asked.resource}: {ceil(units / one)}. A unit is {of_what}."
    return Finding(
        code="BytesForUnits",
        sentence=(
            f"Container {asked.container} asks for {asked.amount} of {asked.resource}. An amount is a"
            " number of units:"
            f" {asked.amount} means {units} of them."
        ),
        advice=[advice],
        is_decisive=units > situation.ledger.biggest().get(asked.resource, 0),
    )


def too_much(situation: PodSituation) -> Iterator[Finding]:
    """Of what is more than any card has: how it may have come about."""
    if _asks_in_bytes(situation):
        return
    biggest = situation.ledger.biggest()
    for asked in situation.request.resources:
        if asked.total > biggest.get(asked.name, asked.total):
            yield from _mebibytes(situation, asked, biggest[asked.name])
            yield from _init_containers(situation, asked)


def _asks_in_bytes(situation: PodSituation) -> bool:
    amounts = (asked.amount for asked in asked_amounts(situation) if asked.resource in RESOURCES)
    return any(map(_BYTES.fullmatch, amounts))


def _mebibytes(situation: PodSituation, asked: ResourceRequest, most: int) -> Iterator[Finding]:
    one = unit_bytes(situation, asked.name) or 0
    meant = ceil(asked.total * MIB / one) if MIB < one <= asked.total * MIB else most + 1
    if meant <= most:
        unit = units_of(situation, asked.name)[0]
        yield noted(
            "MebibytesForUnits",
            (
                f"{asked.total:,} units of {unit} are {memory_text(asked.total * one)}: an amount is a number"
                " of units, not of MiB."
            ),
            f"If you mean {asked.total:,} MiB, write {asked.name}: {meant}.",
        )


def _init_containers(situation: PodSituation, asked: ResourceRequest) -> Iterator[Finding]:
    """Says how init containers count, where they are what makes the pod large."""
    spec = written_pod(situation.pod).spec
    main = sum(asked.containers.get(container.name, 0) for container in spec.containers or ())
    if asked.total <= main:
        return
    holding = [each for each in spec.init_containers or () if each.name in asked.containers]
    staying = [each.name for each in holding if each.is_sidecar]
    names = listed([each.name for each in holding])
    counts = f"init container {names} asks for more than the others together, before they start"
    if staying:
        counts = (
            f"init container {listed(staying)} (restartPolicy: Always) keeps running, so its amount adds up"
        )
    yield noted(
        "InitContainersCount",
        f"The pod asks for {asked.total} of {asked.name} because {counts}.",
        "Ask for less in the init container, or for nothing if it uses no card.",
    )
