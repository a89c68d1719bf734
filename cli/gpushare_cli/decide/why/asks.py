"""What a pod asks for, in units and in bytes."""

from collections.abc import Iterable

from gpushare_cli.decide.why.explanation import ContainerAsk, ResourceAsk
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import amount
from gpushare_core.placement.quantity import MAX_AMOUNT
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.placement.units import parse_unit
from gpushare_core.scheduling.ledger.ledger import Ledger


def resource_asks(situation: PodSituation) -> list[ResourceAsk]:
    """Returns nothing of an amount that is none, such as a negative one."""
    request = situation.request
    return [
        _ask(asked, request, units_in_force(situation.ledger, asked))
        for asked in request.resources
        if asked.total < MAX_AMOUNT
    ]


def units_in_force(ledger: Ledger, asked: ResourceRequest) -> list[str]:
    """Returns what one unit is on the nodes that serve the resource: usually one text."""
    share_nodes = (ledger.share_node(name) for name in ledger.node_names())
    units = {node.unit_of(asked.resource) for node in share_nodes if node and asked.name in node.resources}
    return sorted(units - {""})


def unit_bytes(units: Iterable[str], resource: ResourceClass) -> int | None:
    """Returns the bytes of one unit where it is of memory, and the same everywhere."""
    known = {parse_unit(text).meaning[1] for text in units} if resource is ResourceClass.MEMORY else set()
    return known.pop() if len(known) == 1 else None


def asked_text(asked: ResourceRequest, units: Iterable[str]) -> str:
    """Returns such as ``20 units (20Gi)``."""
    return amount(asked.total, asked.resource, unit_bytes(units, asked.resource))


def _ask(asked: ResourceRequest, request: PodRequest, units: list[str]) -> ResourceAsk:
    of_unit = unit_bytes(units, asked.resource)
    return ResourceAsk(
        resource=asked.name,
        resource_class=asked.resource.value,
        units=asked.total,
        unit=", ".join(units),
        memory_bytes=of_unit and asked.total * of_unit,
        containers=[
            ContainerAsk(
                name=name,
                units=amount_,
                memory_bytes=of_unit and amount_ * of_unit,
                is_init=name in request.init_containers,
            )
            for name, amount_ in asked.containers.items()
        ],
    )
