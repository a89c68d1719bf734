"""How much of what a pod asks for would fit now."""

from collections.abc import Iterator
from dataclasses import replace

from gpushare_cli.decide.why.asks import unit_bytes, units_in_force
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
    for asked in situation.request.resources:
        yield _smaller(situation, asked)


def _smaller(situation: PodSituation, asked: ResourceRequest) -> Remedy:
    of_unit = unit_bytes(units_in_force(situation.ledger, asked), asked.resource)
    for units in _amounts(situation, asked)[:MAX_TRIES]:
        if nodes := fitting(situation, _with(situation.request, asked, units)):
            together = ", all containers together" if len(asked.containers) > 1 else ""
            return Remedy(
                code="SmallerRequest",
                helps=True,
                sentence=(
                    f"Ask for less: {amount(units, asked.resource, of_unit)} of {asked.name}{together}"
                    f" would fit now, on {listed(nodes)}. The pod has to be made anew for it."
                ),
            )
    least = amount(1, asked.resource, of_unit)
    return Remedy(
        code="SmallerRequest",
        helps=False,
        sentence=f"Asking for less: not even {least} of {asked.name} would fit now.",
    )


def _amounts(situation: PodSituation, asked: ResourceRequest) -> list[int]:
    """Returns the smaller amounts that can be the greatest one that fits."""
    if asked.resource is not ResourceClass.MEMORY:
        return [*range(asked.total - 1, 0, -1)]
    free = {card.free for _, card in open_cards(situation, asked) if 0 < card.free < asked.total}
    return sorted(free, reverse=True)


def _with(request: PodRequest, asked: ResourceRequest, units: int) -> PodRequest:
    smaller = replace(asked, total=units, containers={})
    return replace(
        request, resources=tuple(smaller if other is asked else other for other in request.resources)
    )
