"""What of the cards keeps a pod from running: each reason, for how many nodes, and the nearest miss."""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_cli.decide.drain.cordon import cordon_reasons
from gpushare_cli.decide.why.asked import asked_text
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.nearest import fitting_nodes, nearest_text, open_cards, unfit_nodes
from gpushare_cli.decide.why.remedies.closed_cards import is_cordoned, is_sick, openings
from gpushare_cli.decide.why.remedies.trial import cards_text
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import NOUNS, amount
from gpushare_cli.wording import counted, listed
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.unfit_reason import NOT_TOGETHER, Refusal, UnfitReason

CARDS_FIT = "CardsFit"
MAX_DETAILS = 3
"""Nodes of which it is said in full why they are closed."""

Group = dict[str, UnfitReason]
"""Node -> why the pod does not fit it; of one kind and one resource."""


def impossible_pods(situation: PodSituation) -> Iterator[Finding]:
    """Pods that no node takes, whatever is free there."""
    for code, reason in situation.reasons_against(situation.request).items():
        yield decisive(code, _sentence(reason))


def cards_that_do_not_fit(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that the pod may go to, and whose cards have no room for it, by reason."""
    fitting = fitting_nodes(situation)
    for (kind, resource), group in _groups(unfit_nodes(situation)).items():
        asked = next((asked for asked in situation.request.resources if asked.name == resource), None)
        make = _OF_AMOUNTS.get(kind)
        if asked and make:
            yield make(situation, asked, group, is_decisive=not fitting)
        elif kind in _OF_NODES and _is_served(situation):
            yield _of_nodes(_OF_NODES[kind], group, is_decisive=not fitting)


def _is_served(situation: PodSituation) -> bool:
    """Whether all resources are served anywhere: of a name that no node serves more is known elsewhere."""
    biggest = situation.ledger.biggest()
    return all(asked.name in biggest for asked in situation.request.resources)


def cards_with_room(situation: PodSituation) -> Iterator[Finding]:
    if fitting := fitting_nodes(situation):
        have = "has room for it on its cards" if len(fitting) == 1 else "have room for it on their cards"
        sentence = f"{counted(len(fitting), 'node')} {have}: {listed(fitting)}."
        yield noted(CARDS_FIT, sentence, nodes=len(fitting))


def others_come_first(situation: PodSituation) -> Iterator[Finding]:
    """Pods for which others were evicted: the extender keeps what is freed there for a while."""
    fitting = fitting_nodes(situation)
    for pod in situation.waiting:
        if pod.nominated_node in fitting and pod.priority >= situation.kube_pod.priority:
            yield noted(
                "OthersComeFirst",
                (
                    f"{pod.reference} comes first on {pod.nominated_node}: others are evicted there for it"
                    f" (priority {pod.priority}), and what it needs of the cards is kept for it."
                ),
                nodes=1,
            )


def closed_cards_with_room(situation: PodSituation) -> Iterator[Finding]:
    """Only of a pod that no other card takes. What to do about it is among the remedies."""
    if not situation.request.resources or situation.is_impossible or fitting_nodes(situation):
        return
    for code, state, is_closed in (
        ("CardsCordoned", "cordoned", is_cordoned),
        ("CardsSick", "sick", is_sick),
    ):
        for name, indices in openings(situation, is_closed)[0]:
            has, is_ = ("has", "is") if len(indices) == 1 else ("have", "are")
            reasons = listed(_reasons(situation, name, indices))
            yield decisive(
                code,
                (
                    f"{cards_text(indices).capitalize()} of {name} {has} room for it, and {is_}"
                    f" {state}{f' ({reasons})' if reasons else ''}."
                ),
                nodes=1,
            )


def _reasons(situation: PodSituation, name: str, indices: list[int]) -> list[str]:
    """Returns what people or the plugin say of why these cards are closed."""
    node = situation.share_nodes.get(name)
    if node is None:
        return []
    said = cordon_reasons(node.metadata.annotations or {})
    found = (
        said.get(card.uuid, "") if card.cordoned else card.health_reason
        for card in node.cards
        if card.index in indices
    )
    return [*dict.fromkeys(filter(None, found))]


def _groups(unfit: Group) -> dict[tuple[Refusal, str], Group]:
    groups: dict[tuple[Refusal, str], Group] = {}
    for name, reason in unfit.items():
        key = reason.brief if reason.kind is Refusal.NODE_CLOSED else reason.resource
        groups.setdefault((reason.kind, key), {})[name] = reason
    return groups


def _full(situation: PodSituation, asked: ResourceRequest, group: Group, *, is_decisive: bool) -> Finding:
    text = asked_text(situation, asked)
    if mode_serving(asked.resource).on_cards(asked.total).cards == 1:
        noun = NOUNS[asked.resource]
        missing = (
            f"No card has {text} free" if asked.resource is ResourceClass.MEMORY else f"No {noun} is free"
        )
    else:
        are = "are free" if asked.resource is ResourceClass.CARD else "have a free slice"
        missing = f"Fewer than {counted(asked.total, 'card')} {are}"
    return Finding(
        code="CardsFull",
        sentence=f"{missing}{_where(group)}.",
        nodes=len(group),
        nearest=nearest_text(situation, [*group], asked),
        is_decisive=is_decisive,
    )


def _too_small(
    situation: PodSituation, asked: ResourceRequest, group: Group, *, is_decisive: bool
) -> Finding:
    if mode_serving(asked.resource).on_cards(asked.total).cards == 1:
        is_closed = asked.total <= situation.ledger.biggest().get(asked.name, 0)
        card = "No card that takes new pods" if is_closed else "No card"
        missing = f"{card} has {asked_text(situation, asked)}, not even an empty one,"
    else:
        missing = f"Fewer than {counted(asked.total, 'card')} take pods at all"
    return Finding(
        code="CardsTooSmall",
        sentence=f"{missing}{_where(group)}.",
        nodes=len(group),
        nearest=_largest(situation, asked, [*group]),
        is_decisive=is_decisive,
    )


_OF_AMOUNTS = {Refusal.NO_ROOM: _full, Refusal.CARDS_TOO_SMALL: _too_small}
_OF_NODES = {
    Refusal.NOT_TOGETHER: "CardsNotTogether",
    Refusal.SEVERAL_RESOURCES: "SeveralResources",
    Refusal.OTHER_RESOURCE: "OtherResource",
    Refusal.NODE_CLOSED: "NodeClosed",
}


def _of_nodes(code: str, group: Group, *, is_decisive: bool) -> Finding:
    """Core's reasons begin with ``node(s)``, or say nothing of nodes."""
    reason = next(iter(group.values()))
    text = reason.brief.removeprefix("node(s) ")
    sentence = f"It cannot go to {counted(len(group), 'node')} {text}: {listed(sorted(group))}."
    if reason is NOT_TOGETHER:
        sentence = (
            f"Each of its resources alone would fit{_where(group)}, and all together do not: a card serves"
            " one of them at a time."
        )
    details = {name: reason.message.partition(": ")[2] for name, reason in group.items()}
    return Finding(
        code=code,
        sentence=sentence if text != reason.brief or reason is NOT_TOGETHER else _sentence(reason.brief),
        nodes=len(group),
        advice=[f"{name}: {detail}" for name, detail in sorted(details.items()) if detail][:MAX_DETAILS]
        if reason.kind is Refusal.NODE_CLOSED
        else [],
        is_decisive=is_decisive,
    )


def _where(group: Iterable[str]) -> str:
    names = sorted(group)
    return f" on {names[0]}" if len(names) == 1 else f" on {len(names):,} nodes ({listed(names)})"


def _largest(situation: PodSituation, asked: ResourceRequest, nodes: Sequence[str]) -> str:
    name = nodes[0]
    cards = [card for node, card in open_cards(situation, asked) if node == name]
    if mode_serving(asked.resource).on_cards(asked.total).cards > 1:
        return f"{name}: {amount(len(cards), ResourceClass.CARD)} that take pods"
    largest = max(cards, key=lambda card: card.units, default=None)
    if largest is None:
        return ""
    units, noun = largest.units, NOUNS[asked.resource]
    return f"{name} card {largest.index}: {units} of the {asked.total} {noun}s, even when it is empty"


def _sentence(reason: str) -> str:
    """Core's reasons are parts of a sentence."""
    return f"{reason[:1].upper()}{reason[1:]}" + ("" if reason.endswith(".") else ".")
