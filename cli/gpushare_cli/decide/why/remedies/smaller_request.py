"""How much of what a pod asks for would fit now."""

from collections.abc import Iterator
from dataclasses import replace

from gpushare_cli.decide.why.asked import unit_bytes
from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.nearest import open_cards
from gpushare_cli.decide.why.remedies.trial import fitting
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import amount
from gpushare_cli.wording import listed
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

MAX_TRIES = 64
"""Amounts of one resource that are tried, the largest first."""


def smaller_request(situation: PodSituation) -> Iterator[Remedy]:
    """Tries each resource alone: the others stay as they are."""
    request = situation.request
    tried = [(asked, _smaller(situation, asked)) for asked in request.resources]
    yield from (remedy for _, remedy in tried if remedy)
    if any(remedy for _, remedy in tried) or not any(_has_cards(situation, asked) for asked, _ in tried):
        return
    least = " or ".join(f"{_text(situation, asked, 1)} of {asked.name}" for asked, _ in tried)
    yield Remedy(
        code="SmallerRequest", helps=False, sentence=f"Asking for less: not even {least} would fit now."
    )


def _has_cards(situation: PodSituation, asked: ResourceRequest) -> bool:
    return next(open_cards(situation, asked), None) is not None


def _text(situation: PodSituation, asked: ResourceRequest, units: int) -> str:
    return amount(units, asked.resource, unit_bytes(situation, asked.name))


def _smaller(situation: PodSituation, asked: ResourceRequest) -> Remedy | None:
    for units in _amounts(situation, asked)[:MAX_TRIES]:
        if nodes := fitting(situation, _with(situation.request, asked, units)):
            together = ", all containers together," if len(asked.containers) > 1 else ""
            anew = " That takes a new pod." if situation.exists else ""
            return Remedy(
                code="SmallerRequest",
                helps=True,
                units=units,
                nodes=nodes,
                sentence=(
                    f"Ask for less: {_text(situation, asked, units)} of {asked.name}{together}"
                    f" would fit now, on {listed(nodes)}.{anew}"
                ),
            )
    return None


def _amounts(situation: PodSituation, asked: ResourceRequest) -> list[int]:
    """Returns the smaller amounts that can be the greatest one that fits. Of a single resource the ledger
    knows it."""
    if len(situation.request.resources) == 1:
        greatest = situation.ledger.greatest[asked.name]
        most = max((greatest.get(name, 0) for name in situation.allowed_nodes), default=0)
        return [min(most, asked.total - 1)] if most > 0 and asked.total > 1 else []
    if asked.resource is not ResourceClass.MEMORY:
        return [*range(asked.total - 1, 0, -1)]
    free = {card.free for _, card in open_cards(situation, asked) if 0 < card.free < asked.total}
    return sorted(free, reverse=True)


def _with(request: PodRequest, asked: ResourceRequest, units: int) -> PodRequest:
    containers = {name: min(amount_, units) for name, amount_ in asked.containers.items()}
    smaller = replace(asked, total=units, containers=containers)
    return replace(
        request, resources=tuple(smaller if other is asked else other for other in request.resources)
    )
