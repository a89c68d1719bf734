"""The inspect response for the tools of a replaced system: the nodes of its dialect."""

from collections.abc import Iterator
from datetime import UTC, datetime

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.inspection import InspectedCard, InspectedNode, InspectedPod
from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import printable

MEMORY = ResourceClass.MEMORY
"""The only class that those systems know: a card that serves another one is shown as full, without pods."""


def inspect_dialect(ledger: Ledger, dialect: Dialect, node: str = "") -> Json:
    """Returns the response for ``node``, or for all nodes of ``dialect``."""
    names = [node] if node else ledger.node_names()
    nodes = [inspected for name in names if (inspected := _inspected(ledger, dialect, name))]
    error = f"node {node} does not share GPU cards by {dialect.name}" if node and not nodes else ""
    return dialect.codec.inspection(nodes, printable(error))


def _inspected(ledger: Ledger, dialect: Dialect, name: str) -> InspectedNode | None:
    """Returns None for a node of another dialect, and for one that serves no units of memory."""
    node = ledger.node(name)
    share_node = node.share_node if node else None
    if node is None or share_node is None or share_node.dialect is not dialect:
        return None
    if dialect.resource_name(MEMORY) not in share_node.resources:
        return None
    return InspectedNode(name=name, cards=tuple(_card(ledger, node, card) for card in node.cards(MEMORY)))


def _card(ledger: Ledger, node: NodeLedger, card: Card) -> InspectedCard:
    return InspectedCard(
        index=card.index,
        units=card.units,
        allocated=card.allocated,
        pods=tuple(_pods(ledger, node, card.uuid)) if node.lock_of(card.uuid) is MEMORY else (),
    )


def _pods(ledger: Ledger, node: NodeLedger, card: str) -> Iterator[InspectedPod]:
    for share in sorted(node.shares(card)):
        if share.units:
            holder = ledger.holder(share.uid)
            yield InspectedPod(
                namespace=share.namespace,
                name=share.name,
                uid=share.uid,
                created=rfc3339(datetime.fromtimestamp(holder.created, UTC))
                if holder and holder.created
                else "",
                units=share.units,
            )
