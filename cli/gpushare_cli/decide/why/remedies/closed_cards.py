"""Whether the pod would fit a card that takes no new pods now: one that is cordoned, or sick."""

from collections.abc import Callable, Iterator, Sequence

from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.remedies.trial import cards_text, chosen_cards, node_with, with_open_cards
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import listed
from gpushare_core.scheduling.objects.share_node import ShareNodeCard

MAX_NODES = 3
"""Of which cards are named."""


def is_cordoned(card: ShareNodeCard) -> bool:
    return card.cordoned and card.healthy


def is_sick(card: ShareNodeCard) -> bool:
    return not card.healthy


def uncordoning(situation: PodSituation) -> Iterator[Remedy]:
    """Tries cards that people have cordoned."""
    found, names = openings(situation, is_cordoned)
    for name, indices in found:
        cards = cards_text(indices)
        verb = "it were" if len(indices) == 1 else "they were"
        yield Remedy(
            code="Uncordon",
            helps=True,
            nodes=[name],
            sentence=f"Uncordon {cards} of {name}: it would fit there if {verb} not cordoned.",
            commands=[f"kubectl gpushare uncordon {name} {index}" for index in indices],
        )
    if names and not found:
        yield Remedy(
            code="Uncordon",
            helps=False,
            sentence=f"Uncordoning cards: those of {listed(names)} have no room for it, either.",
        )


def mending(situation: PodSituation) -> Iterator[Remedy]:
    """Tries cards that are sick."""
    found, _ = openings(situation, is_sick)
    for name, indices in found:
        observed = situation.share_nodes.get(name)
        faults = {card.index: card.health_reason for card in observed.cards} if observed else {}
        reasons = [reason for index in indices if (reason := faults.get(index))]
        why = f" ({listed(reasons)})" if reasons else ""
        cordoned = any(card.cordoned for card in _cards(situation, name) if card.index in indices)
        also = f" and uncordon {'it' if len(indices) == 1 else 'them'}" if cordoned else ""
        yield Remedy(
            code="Mend",
            helps=True,
            nodes=[name],
            sentence=f"Repair {cards_text(indices)} of {name}{why}{also}: it would fit there.",
            commands=[f"kubectl gpushare inspect {name} --card {index}" for index in indices],
        )


def openings(
    situation: PodSituation, is_closed: Callable[[ShareNodeCard], bool]
) -> tuple[list[tuple[str, list[int]]], list[str]]:
    """Returns of the first nodes where it helps to open such cards the cards that the pod would get, and all
    nodes that have such cards."""
    found: list[tuple[str, list[int]]] = []
    names: list[str] = []
    for name in situation.allowed_nodes:
        cards = [card for card in _cards(situation, name) if is_closed(card)]
        if not cards:
            continue
        names.append(name)
        if len(found) < MAX_NODES and (indices := _opened(situation, name, cards)):
            found.append((name, indices))
    return found, names


def _cards(situation: PodSituation, name: str) -> Sequence[ShareNodeCard]:
    share_node = situation.ledger.share_node(name)
    return share_node.cards if share_node else ()


def _opened(situation: PodSituation, name: str, cards: list[ShareNodeCard]) -> list[int]:
    """Returns which of ``cards`` have to be opened: one alone, if that will do."""
    node = situation.ledger.node(name)
    if node is None or node.share_node is None:
        return []
    for some in (*([card] for card in cards), cards):
        trial = node_with(node, with_open_cards(node.share_node, {card.uuid for card in some}))
        chosen = chosen_cards(trial, situation.request)
        if chosen:
            return [card.index for card in some if card.index in chosen]
    return []
