"""What another unit of memory would do to each node."""

from collections.abc import Iterable, Iterator

from gpushare_cli.decide.ledger import is_held
from gpushare_cli.decide.simulation.node_sharing import pods_on, sharing_of, spec_of
from gpushare_cli.decide.simulation.policy_change import NodeChange, NodeEffect
from gpushare_cli.decide.simulation.redivision import with_memory_unit
from gpushare_core.api.enums import UnitChange
from gpushare_core.placement.units import MemoryUnit
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.text.json_object import Json


def unit_effects(share_nodes: Iterable[Json], unit: MemoryUnit, *, ledger: Ledger) -> Iterator[NodeChange]:
    """Yields a change for each node that shares cards, by name. ``ledger``: in the present units."""
    for share_node in sorted(share_nodes, key=lambda share_node: str(share_node["metadata"]["name"])):
        before, after = sharing_of(share_node), sharing_of(with_memory_unit(share_node, unit))
        name = str(share_node["metadata"]["name"])
        node = ledger.node(name) or NodeLedger()
        effect = NodeEffect.NONE if before == after else _effect(share_node, node)
        yield NodeChange(node=name, effect=effect, before=before, after=after, pods=pods_on(node))


def _effect(share_node: Json, node: NodeLedger) -> NodeEffect:
    if not is_held(node):
        return NodeEffect.DIVIDES
    is_kept = spec_of(share_node).get("unitChange") == UnitChange.KEEP
    return NodeEffect.KEEPS if is_kept else NodeEffect.WAITS
