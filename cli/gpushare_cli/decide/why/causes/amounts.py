"""Amounts that say something else than was meant: bytes for units, requests without limits, nothing."""

import re
from collections.abc import Iterator
from math import ceil

from gpushare_cli.decide.why.asked import (
    AskedAmount,
    asked_amounts,
    served_resources,
    unit_bytes,
    units_of,
)
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.written_pod import WrittenContainer, written_pod
from gpushare_cli.wording import listed, memory_text
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.modes.table import crowded_container_reason, mode_serving, too_many_units_reason
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
    if request is not None and read_amount(request) != amount:
        return _different(container, name, text, str(request))
    if amount == 0:
        return _nothing(container, name)
    if amount.denominator != 1:
        return _fraction(container, name, text)
    return _bytes(situation, AskedAmount(container.name, name, text)) if _BYTES.fullmatch(text) else None


def _without_limit(container: WrittenContainer, name: str, amount: str) -> Finding:
    return Finding(
        code="NoLimit",
        sentence=(
            f"Container {container.name} has {name} in its requests and not in its limits: Kubernetes refuses"
            " such a pod."
        ),
        advice=[f"Write {name}: {amount} in resources.limits; in requests it can be left out."],
        is_decisive=True,
    )


def _different(container: WrittenContainer, name: str, limit: str, request: str) -> Finding:
    return Finding(
        code="LimitDiffers",
        sentence=(
            f"Container {container.name} has {request} of {name} in its requests and {limit} in its limits:"
            " Kubernetes refuses such a pod."
        ),
        advice=[f"Take {name} out of resources.requests: the limit counts."],
        is_decisive=True,
    )


def _nothing(container: WrittenContainer, name: str) -> Finding:
    return Finding(
        code="AsksForNothing",
        sentence=f"Container {container.name} asks for 0 of {name}: it gets no card.",
        advice=[f"If it is to have one, write how many units it needs, such as {name}: 1."],
    )


def _fraction(container: WrittenContainer, name: str, amount: str) -> Finding:
    finer = " For finer shares a smaller memoryUnit in the policy helps, such as 256Mi."
    is_memory = RESOURCES[name] is ResourceClass.MEMORY
    return Finding(
        code="NotWhole",
        sentence=f"Container {container.name} asks for {amount} of {name}: Kubernetes counts it in whole numbers.",
        advice=[f"Write a whole number, such as {name}: 1.{finer if is_memory else ''}"],
        is_decisive=True,
    )


def _bytes(situation: PodSituation, asked: AskedAmount) -> Finding:
    units, one = int(read_amount(asked.amount)), unit_bytes(situation, asked.resource)
    what = f"{asked.amount} means {units} units, for an amount is a number of units and not of bytes"
    advice = f"Write how many units it needs, such as {asked.resource}: 1."
    if one:
        of_what = units_of(situation, asked.resource)[0]
        advice = f"Write {asked.resource}: {ceil(units / one)}. A unit is {of_what}."
    return Finding(
        code="BytesForUnits",
        sentence=f"Container {asked.container} asks for {asked.amount} of {asked.resource}. {what}.",
        advice=[advice],
        is_decisive=units > situation.ledger.biggest().get(asked.resource, 0),
    )


def too_much(situation: PodSituation) -> Iterator[Finding]:
    """Looks at what the pod asks for as a whole, and no node can ever have."""
    reason = crowded_container_reason(situation.request) or too_many_units_reason(situation.request)
    if reason and not _asks_in_bytes(situation):
        sentence, _, advice = reason.partition("; " if "; " in reason else ": ask")
        advice = advice if "; " in reason else f"ask{advice}"
        yield Finding(
            code="Unservable",
            sentence=f"{sentence[0].upper()}{sentence[1:]}.",
            advice=[f"{advice[0].upper()}{advice[1:]}."],
            is_decisive=True,
        )
        return
    yield from _more_than_a_card(situation)
    yield from _not_together(situation)


def _asks_in_bytes(situation: PodSituation) -> bool:
    return any(
        asked.resource in RESOURCES and _BYTES.fullmatch(asked.amount) for asked in asked_amounts(situation)
    )


def _more_than_a_card(situation: PodSituation) -> Iterator[Finding]:
    biggest = situation.ledger.biggest()
    for asked in situation.request.resources:
        most = biggest.get(asked.name)
        if most is None or asked.total <= most or _asks_in_bytes(situation):
            continue
        yield Finding(
            code="MoreThanAnyCard",
            sentence=(
                f"The pod asks for {asked.total} of {asked.name}{_in_bytes(situation, asked)}{asked.by_container},"
                f" and {mode_serving(asked.resource).most_text(most)}."
            ),
            advice=_smaller(situation, asked, most),
            is_decisive=True,
        )


def _in_bytes(situation: PodSituation, asked: ResourceRequest) -> str:
    one = unit_bytes(situation, asked.name)
    return f", which is {memory_text(asked.total * one)}" if one else ""


def _smaller(situation: PodSituation, asked: ResourceRequest, most: int) -> list[str]:
    one = unit_bytes(situation, asked.name)
    as_mebibytes = ceil(asked.total * MIB / one) if one else 0
    if one > MIB and as_mebibytes <= most:
        unit = units_of(situation, asked.name)[0]
        return [f"If you mean {asked.total} MiB, write {asked.name}: {as_mebibytes}. A unit is {unit}."]
    return [f"Ask for {most} at most: waiting does not help.", *_of_init_containers(situation, asked)]


def _of_init_containers(situation: PodSituation, asked: ResourceRequest) -> list[str]:
    """Returns how init containers count, where they are what makes the pod large."""
    spec = written_pod(situation.pod).spec
    main = sum(asked.containers.get(container.name, 0) for container in spec.containers or ())
    if asked.total <= main:
        return []
    sidecars = [each.name for each in spec.init_containers or () if each.is_sidecar]
    holding = [name for name in sidecars if name in asked.containers]
    if holding:
        return [f"What init container {listed(holding)} asks for counts as well: it stays beside the others."]
    return [
        "The largest init container counts where it asks for more than the others together: it runs before them."
    ]


def _not_together(situation: PodSituation) -> Iterator[Finding]:
    asked = [resource.name for resource in situation.request.resources]
    if len(asked) < 2 or not set(asked) <= served_resources(situation).keys():
        return
    nodes = map(situation.ledger.share_node, situation.ledger.node_names())
    if not any(node and set(asked) <= node.resources.keys() for node in nodes):
        yield Finding(
            code="NotOnOneNode",
            sentence=f"The pod asks for {' and '.join(asked)}, and no node serves all of them: only mode Mixed does.",
            advice=["Make a pod of each, or have nodes in mode Mixed."],
            is_decisive=True,
        )
