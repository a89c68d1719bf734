"""Follows the auditor's advice on pods without units, which chaos itself put on nodes that offer none."""

from collections.abc import Iterable

from chaos.operations.static_pods import remove_file
from chaos.world import World
from gpushare_core.audit.difference import Difference, DifferenceKind


async def end_pods_without_units(world: World, differences: Iterable[Difference]) -> bool:
    """Returns whether there were any. Only pods that were bound past every scheduler are ended: any other one
    is a finding."""
    found = [
        (difference.node, difference.pod.rpartition("/")[2])
        for difference in differences
        if difference.kind is DifferenceKind.WITHOUT_UNITS
    ]
    bound = [(node, name) for node, name in found if name in world.bound_past_schedulers]
    for node, name in bound:
        await _end(world, node, name)
    return bool(bound)


async def _end(world: World, node: str, name: str) -> None:
    """A static pod is its file."""
    if name in world.static_pods:
        remove_file(world, node=node, name=name.removesuffix(f"-{node}"))
    else:
        world.drained.add(name)
        await world.delete_pod(name)
