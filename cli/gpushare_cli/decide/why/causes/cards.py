"""What of the cards keeps a pod from running: each reason, for how many nodes, and the nearest miss."""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_cli.decide.why.asks import asked_text, units_in_force
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.nearest import fitting_nodes, nearest_text, open_cards, unfit_nodes
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import NOUNS, amount
from gpushare_cli.wording import counted, listed
from gpushare_core.dialects.annotation_room import lack_of_room, worst_size
from gpushare_core.placement.modes.table import crowded_container_reason, mode_serving, too_many_units_reason
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.unfit_reason import Refusal, UnfitReason

Group = dict[str, UnfitReason]
"""Node -> why the pod does not fit it; of one kind and one resource."""


def impossible_pods(situation: PodSituation) -> Iterator[Finding]:
    """Pods that no node takes, whatever is free there."""
    request = situation.request
    size = situation.kube_pod.version.annotations_size
    reasons = {
        "CrowdedContainer": crowded_container_reason(request),
        "TooManyUnits": too_many_units_reason(request),
        "AnnotationsFull": lack_of_room(size, worst_size(request)) if request.resources else "",
    }
    for code, reason in reasons.items():
        if reason:
            yield Finding(code=code, sentence=_sentence(reason), is_decisive=True)


def cards_that_do_not_fit(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that the pod may go to, and whose cards have no room for it, by reason."""
    if not situation.request.resources or [*impossible_pods(situation)]:
        return
    fitting = fitting_nodes(situation)
    for (kind, resource), group in _groups(unfit_nodes(situation)).items():
        asked = next((asked for asked in situation.request.resources if asked.name == resource), None)
        make = _OF_AMOUNTS.get(kind)
        if asked and make:
            yield make(situation, asked, group, is_decisive=not fitting)
        elif kind in _OF_NODES:
            yield _of_nodes(_OF_NODES[kind], group, is_decisive=not fitting)


def cards_with_room(situation: PodSituation) -> Iterator[Finding]:
    fitting = fitting_nodes(situation) if situation.request.resources else []
    if fitting and not [*impossible_pods(situation)]:
        verb = "has" if len(fitting) == 1 else "have"
        sentence = f"The cards of {counted(len(fitting), 'node')} {verb} room for it: {listed(fitting)}."
        yield Finding(code="CardsFit", sentence=sentence, nodes=len(fitting))


def _groups(unfit: Group) -> dict[tuple[Refusal, str], Group]:
    groups: dict[tuple[Refusal, str], Group] = {}
    for name, reason in unfit.items():
        key = reason.brief if reason.kind is Refusal.NODE_CLOSED else reason.resource
        groups.setdefault((reason.kind, key), {})[name] = reason
    return groups


def _full(situation: PodSituation, asked: ResourceRequest, group: Group, *, is_decisive: bool) -> Finding:
    units = units_in_force(situation.ledger, asked)
    text = asked_text(asked, units)
    if mode_serving(asked.resource).on_cards(asked.total).cards == 1:
        noun = NOUNS[asked.resource]
        missing = (
            f"No card has {text} free" if asked.resource is ResourceClass.MEMORY else f"No {noun} is free"
        )
    else:
        what = "free cards" if asked.resource is ResourceClass.CARD else "cards with a free slice"
        missing = f"No node has {asked.total} {what}"
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
    units = units_in_force(situation.ledger, asked)
    if mode_serving(asked.resource).on_cards(asked.total).cards == 1:
        missing = f"No card is large enough for {asked_text(asked, units)}, not even an empty one,"
    else:
        missing = f"No node has {amount(asked.total, ResourceClass.CARD)} that take pods, free or not,"
    return Finding(
        code="CardsTooSmall",
        sentence=f"{missing.rstrip(',')}{_where(group)}.",
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
    reasons = {*group.values()}
    first = next(iter(group.values()))
    text = first.message if len({reason.message for reason in reasons}) == 1 else first.brief
    return Finding(
        code=code,
        sentence=_sentence(f"{text}{_where(group)}"),
        nodes=len(group),
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
    return f"{name} card {largest.index}: {amount(largest.units, asked.resource)} in all" if largest else ""


def _sentence(reason: str) -> str:
    """Core's reasons are parts of a sentence."""
    return f"{reason[:1].upper()}{reason[1:]}" + ("" if reason.endswith(".") else ".")
