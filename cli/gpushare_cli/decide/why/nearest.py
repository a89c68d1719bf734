"""Which nodes and which cards come closest to what a pod asks for, and who is in the way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import NOUNS, amount
from gpushare_cli.wording import listed
from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.fit_index import Answer, Fit
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.ledger.node_sums import Share
from gpushare_core.scheduling.ledger.unfit_reason import UnfitReason

MAX_NODES = 5
"""Of which pods are read: each is a request."""
MAX_CARDS = 2
"""Of a node that has too few free cards: those that are named."""


@dataclass(frozen=True, slots=True)
class CardMiss:
    """A card that does not take a request."""

    node: str
    card: Card
    holders: Sequence[Share]
    """The one with the most units first."""
    locked_to: str = ""
    """Mode Mixed: the mode that the card serves now; empty where that is the one asked for."""


def unfit_nodes(situation: PodSituation) -> dict[str, UnfitReason]:
    """Returns the nodes that the pod may go to, and that do not fit, the nearest to a fit first."""
    names, answers = _answers(situation)
    unfit = {
        name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, UnfitReason)
    }
    return dict(sorted(unfit.items(), key=lambda item: _farness(*item)))


def _answers(situation: PodSituation) -> tuple[Sequence[str], Sequence[Answer]]:
    """Returns nothing for a pod that asks for nothing, and for one that no node takes whatever is free."""
    if not situation.request.resources or situation.is_impossible:
        return (), ()
    names = situation.allowed_nodes
    return names, situation.ledger.answers(names, situation.request)


def _farness(name: str, reason: UnfitReason) -> tuple[bool, tuple[int, ...], str]:
    return not reason.resolvable, tuple(-part for part in reason.nearness), name


def fitting_nodes(situation: PodSituation) -> list[str]:
    names, answers = _answers(situation)
    return [name for name, answer in zip(names, answers, strict=True) if isinstance(answer, Fit)]


def nearest_nodes(situation: PodSituation) -> list[str]:
    """Returns the nodes of which the pods are worth reading: the pod would fit if some of them went."""
    nearest = [name for name, reason in unfit_nodes(situation).items() if reason.resolvable]
    nominated = situation.kube_pod.nominated_node
    first = [nominated] if nominated in nearest else []
    return [*first, *(name for name in nearest if name not in first)][:MAX_NODES]


def nearest_text(situation: PodSituation, nodes: Sequence[str], asked: ResourceRequest) -> str:
    """Returns such as ``gpu-2 card 5: 18 of the 20 units free, held by ml/nb-anna 14``; empty where no card
    comes close."""
    if not nodes or (node := situation.ledger.node(nodes[0])) is None:
        return ""
    needed = mode_serving(asked.resource).on_cards(asked.total)
    if needed.cards == 1:
        miss = nearest_card(nodes[0], node, asked)
        return _of_card(miss, needed.units, asked.resource) if miss else ""
    return _of_cards(nodes[0], node, asked)


def nearest_card(name: str, node: NodeLedger, asked: ResourceRequest) -> CardMiss | None:
    """Returns the open card with the most free units, of those that are large enough if there are any."""
    units = mode_serving(asked.resource).on_cards(asked.total).units
    open_cards = [card for card in node.cards(asked.resource) if card.healthy and card.units > 0]
    best = max(open_cards, key=lambda card: (card.units >= units, card.free, -card.index), default=None)
    return card_miss(name, node, best, asked.resource) if best else None


def card_miss(name: str, node: NodeLedger, card: Card, resource: ResourceClass) -> CardMiss:
    lock = node.lock_of(card.uuid)
    other = lock is not None and lock is not resource
    holders = sorted(
        (share for share in node.shares(card.uuid) if share.units), key=lambda share: (-share.units, share)
    )
    return CardMiss(name, card, holders, mode_serving(lock).name if lock and other else "")


def _of_card(miss: CardMiss, units: int, resource: ResourceClass) -> str:
    card, noun = miss.card, NOUNS[resource]
    place = f"{miss.node} card {card.index}"
    if miss.locked_to:
        return f"{place} serves {miss.locked_to} as long as others have it{_held(miss)}"
    if card.units < units:
        return f"{place}: it has {amount(card.units, resource)} in all, {units} are asked for"
    if resource is ResourceClass.MEMORY:
        return f"{place}: {max(0, card.free)} of the {units} {noun}s free{_held(miss)}"
    return f"{place}: no {noun} free{_held(miss)}"


def _held(miss: CardMiss) -> str:
    shown = [f"{share.namespace}/{share.name} {share.units}" for share in miss.holders]
    return f", held by {listed(shown)}" if shown else ""


def _of_cards(name: str, node: NodeLedger, asked: ResourceRequest) -> str:
    cards = [card for card in node.cards(asked.resource) if card.healthy and card.units > 0]
    free = sum(card.fits(1) for card in cards)
    what = "free cards" if asked.resource is ResourceClass.CARD else "cards with a free slice"
    misses = [card_miss(name, node, card, asked.resource) for card in cards if not card.fits(1)]
    shown = "; ".join(_one_of(miss) for miss in sorted(misses, key=_hold_size)[:MAX_CARDS])
    more = f"; and {len(misses) - MAX_CARDS} more" if len(misses) > MAX_CARDS else ""
    return f"{name}: {free} of {asked.total} {what}{'; ' if shown else ''}{shown}{more}"


def _hold_size(miss: CardMiss) -> tuple[int, int]:
    return len(miss.holders), miss.card.index


def _one_of(miss: CardMiss) -> str:
    serves = f" serves {miss.locked_to} now" if miss.locked_to else ""
    return f"card {miss.card.index}{serves}{_held(miss).removeprefix(',')}"


def open_cards(situation: PodSituation, asked: ResourceRequest) -> Iterator[tuple[str, Card]]:
    """Yields the cards that take new pods of the nodes that the pod may go to, as its class sees them."""
    for name in situation.allowed_nodes:
        node = situation.ledger.node(name)
        if node is None or node.open_share_node is None or asked.name not in node.open_share_node.resources:
            continue
        for card in node.cards(asked.resource):
            if card.healthy:
                yield name, card
