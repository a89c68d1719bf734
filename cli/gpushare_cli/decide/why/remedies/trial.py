"""Nodes as they would be: the facts stay as they are."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from gpushare_cli.decide.why.situation import PodSituation
from gpushare_core.placement.requests import PodRequest, Request
from gpushare_core.scheduling.fit.filter import passing_nodes
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.share_node import NO_CARD_REASONS, ShareNode


def fitting(situation: PodSituation, request: PodRequest) -> list[str]:
    """Returns the nodes that the pod may go to, and that take ``request``."""
    if situation.reasons_against(request):
        return []
    return passing_nodes(situation.ledger, situation.allowed_nodes, request)


def node_with(node: NodeLedger, share_node: ShareNode) -> NodeLedger:
    """Returns the node as it would be with this GPUShareNode."""
    trial = NodeLedger()
    trial.set_share_node(share_node)
    for holder in node.holders.values():
        trial.put(holder)
    return trial


def with_open_cards(share_node: ShareNode, cards: Collection[str]) -> ShareNode:
    """Returns the GPUShareNode with these cards (UUIDs) healthy and not cordoned."""
    opened = tuple(
        replace(card, healthy=True, cordoned=False) if card.uuid in cards else card
        for card in share_node.cards
    )
    closed = share_node.closed_reason
    return replace(share_node, cards=opened, closed_reason="" if closed in NO_CARD_REASONS else closed)


def empty(share_node: ShareNode) -> NodeLedger:
    """Returns a new node of the same kind: all its cards open, nobody on them."""
    cards = tuple(
        replace(card, allocated=0, holders=(), lock=None, healthy=True, cordoned=False)
        for card in share_node.cards
    )
    trial = NodeLedger()
    trial.set_share_node(replace(share_node, cards=cards, closed_reason=""))
    return trial


def chosen_cards(node: NodeLedger, request: Request, *, gone: Collection[str] = ()) -> Sequence[int]:
    """Returns the indices of the cards that ``request`` would get; none where it does not fit."""
    chosen = {card for choice in node.choose_together(request, gone=gone) for card in choice.units}
    return [card.index for card in node.cards() if card.uuid in chosen]


def cards_text(indices: Sequence[int]) -> str:
    return f"card{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}"
