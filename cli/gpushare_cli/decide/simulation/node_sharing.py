"""How a node shares its cards now, and which pods hold units of them."""

from gpushare_cli.decide.ledger import card_uuids, shares_of
from gpushare_cli.decide.simulation.policy_change import NodeSharing, PodInTheWay
from gpushare_cli.decide.simulation.redivision import mode_of, unit_in_force
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.text.json_object import Json


def sharing_of(share_node: Json | None) -> NodeSharing:
    if share_node is None:
        return NodeSharing()
    status = share_node.get("status") or {}
    unit = unit_in_force(share_node)
    return NodeSharing(
        policy=str(spec_of(share_node).get("policy", "")),
        mode=mode_of(share_node),
        unit=unit.text if unit else "",
        isolation=isolation_of(share_node),
        cards=len(status.get("cards") or ()) if unit else None,
    )


def isolation_of(share_node: Json | None) -> str:
    """Returns what is asked for to hold containers to their share; empty for nothing."""
    asked = str((spec_of(share_node).get("isolation") or {}).get("memory", MemoryIsolation.NONE))
    return "" if asked == MemoryIsolation.NONE else asked


def pods_on(node: NodeLedger) -> list[PodInTheWay]:
    """Returns the pods that hold units of the node's cards, by name."""
    return [
        PodInTheWay(namespace=share.namespace, name=share.name, units=share.units)
        for share in shares_of(node, card_uuids(node))
    ]


def spec_of(share_node: Json | None) -> Json:
    spec: Json = (share_node or {}).get("spec") or {}
    return spec
