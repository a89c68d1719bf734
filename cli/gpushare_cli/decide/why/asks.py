"""What a pod asks for, in units and in bytes."""

from gpushare_cli.decide.why.asked import unit_bytes, units_of
from gpushare_cli.decide.why.explanation import ContainerAsk, ResourceAsk
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_core.placement.quantity import MAX_AMOUNT
from gpushare_core.placement.requests import PodRequest, ResourceRequest


def resource_asks(situation: PodSituation) -> list[ResourceAsk]:
    """Returns nothing of an amount that is none, such as a negative one."""
    request = situation.request
    return [_ask(situation, asked, request) for asked in request.resources if asked.total < MAX_AMOUNT]


def _ask(situation: PodSituation, asked: ResourceRequest, request: PodRequest) -> ResourceAsk:
    of_unit = unit_bytes(situation, asked.name)
    return ResourceAsk(
        resource=asked.name,
        resource_class=asked.resource.value,
        units=asked.total,
        unit=", ".join(units_of(situation, asked.name)),
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
