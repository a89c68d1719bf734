"""What a pod asks for in its own words, and what nodes serve: for sentences."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gpushare_cli.decide.scheduling.written_pod import WrittenContainer, written_pod
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import amount
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import read_amount
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.objects.share_node import ShareNode

NO_AMOUNT = "0"


class AskedAmount(NamedTuple):
    """What a container asks of one resource."""

    container: str
    resource: str
    amount: str
    """As it is written."""


def asked_amounts(situation: PodSituation) -> Iterator[AskedAmount]:
    """Yields every resource with a ``/`` of which a container asks for more than nothing."""
    for container in written_pod(situation.pod).spec.all_containers:
        yield from (
            AskedAmount(container.name, name, amount)
            for name, amount in _written(container).items()
            if "/" in name and read_amount(amount) > 0
        )


def _written(container: WrittenContainer) -> Mapping[str, str]:
    return {name: str(amount) for name, amount in {**container.requests, **container.limits}.items()}


def _share_nodes(situation: PodSituation) -> Iterator[ShareNode]:
    return filter(None, map(situation.ledger.share_node, situation.ledger.node_names()))


def served_resources(situation: PodSituation) -> dict[str, ResourceClass]:
    """Returns name -> class of what GPUShareNodes serve."""
    served: dict[str, ResourceClass] = {}
    for resources in {id(node.resources): node.resources for node in _share_nodes(situation)}.values():
        served |= resources
    return served


def served_of_class(situation: PodSituation, resource: ResourceClass | None) -> str:
    """Returns the name of what nodes serve of a class; of another class where nothing else is served; empty
    where nothing is."""
    served = served_resources(situation)
    same = sorted(name for name, class_ in served.items() if class_ is resource)
    return next(iter([*same, *sorted(served)]), "")


def units_of(situation: PodSituation, name: str) -> list[str]:
    """Returns what one unit of a resource is, such as ``1Gi``: of all nodes that serve it, each once."""
    serving = (node for node in _share_nodes(situation) if name in node.resources)
    return sorted({node.unit_of(node.resources[name]) for node in serving} - {""})


def unit_bytes(situation: PodSituation, name: str) -> int | None:
    """Returns the bytes of one unit where it is of memory, and the same everywhere."""
    memory = ResourceClass.MEMORY
    serving = (node for node in _share_nodes(situation) if node.resources.get(name) is memory)
    sizes = {meaning[1] for node in serving if (meaning := node.meaning_of(memory))}
    return sizes.pop() if len(sizes) == 1 else None


def asked_text(situation: PodSituation, asked: ResourceRequest) -> str:
    """Returns such as ``20 units (20Gi)``."""
    return amount(asked.total, asked.resource, unit_bytes(situation, asked.name))


def how_many(situation: PodSituation, name: str) -> str:
    """Returns what to write of a resource where the amount is not known."""
    units, most = units_of(situation, name), situation.ledger.biggest().get(name, 0)
    if RESOURCES.get(name) is not ResourceClass.MEMORY or len(units) != 1:
        return f"{name}: 1"
    return f"{name}: N, with N for how many units of {units[0]} it needs, {most} at most"
