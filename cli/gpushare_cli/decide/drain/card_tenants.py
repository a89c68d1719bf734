"""Who has units of the cards that are cordoned or drained."""

from collections.abc import Mapping, Sequence

from gpushare_cli.decide.drain.cordon import cordon_reasons, is_asked_for
from gpushare_cli.decide.drain.cordon_report import CardCordon, CardTenant
from gpushare_cli.decide.ledger import orphaned_uids, shares_of
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger


def tenants_of(cards: Sequence[ObservedCard], ledger: NodeLedger) -> list[CardTenant]:
    """Returns each pod once, by name, with its units of all the cards."""
    orphans = orphaned_uids(cards)
    return [
        CardTenant(
            namespace=share.namespace,
            name=share.name,
            uid=share.uid,
            units=share.units,
            orphaned=share.uid in orphans,
        )
        for share in shares_of(ledger, [card.uuid for card in cards])
    ]


def card_cordons(
    share_node: ObservedShareNode,
    cards: Sequence[ObservedCard],
    annotations: Mapping[str, str],
    *,
    ledger: NodeLedger,
) -> list[CardCordon]:
    """``annotations``: those that are asked for, which the object may not have yet. ``ledger``: of the
    node."""
    reasons = cordon_reasons(annotations)
    present = {card.uuid: card for card in share_node.cards}
    return [
        CardCordon(
            index=card.index,
            uuid=card.uuid,
            model=card.model,
            units=card.units,
            allocated_units=card.allocated_units,
            cordoned=is_asked_for(card, annotations),
            in_force=card.cordoned,
            reason=reasons.get(card.uuid, ""),
            health=card.health,
            health_reason=card.health_reason,
            pods=tenants_of([card], ledger),
        )
        for card in (present.get(card.uuid, card) for card in cards)
    ]
