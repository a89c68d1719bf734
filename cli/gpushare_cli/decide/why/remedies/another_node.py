"""Which kind of node would take the pod if there was one more, and why free units elsewhere do not add up."""

from collections.abc import Iterator

from gpushare_cli.decide.why.asks import asked_text, unit_bytes, units_in_force
from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.nearest import open_cards
from gpushare_cli.decide.why.remedies.trial import empty
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import amount
from gpushare_cli.wording import counted
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import ResourceClass, ResourceRequest
from gpushare_core.scheduling.objects.share_node import ShareNode


def another_node(situation: PodSituation) -> Iterator[Remedy]:
    """Tries an empty node of each kind that there is, and to which the pod might go; of those that take it
    names the smallest."""
    ledger, kinds = situation.ledger, dict[tuple[int, ...], ShareNode]()
    for name in ledger.node_names():
        if (share_node := ledger.share_node(name)) and situation.may_go_to_new(name):
            kinds.setdefault(
                (id(share_node.resources), *(card.units for card in share_node.cards)), share_node
            )
    taking = [kind for kind in kinds.values() if empty(kind).choose_together(situation.request)]
    if smallest := min(taking, key=_capacity, default=None):
        cards = counted(len(smallest.cards), "card")
        yield Remedy(
            code="AnotherNode",
            helps=True,
            sentence=f"One more node like {smallest.name} ({cards}{_units_each(smallest)}).",
        )
    elif kinds:
        needs = " and ".join(_needs(situation, asked) for asked in situation.request.resources)
        needs += ", each of its own" if len(situation.request.resources) > 1 else ""
        yield Remedy(
            code="AnotherNode",
            helps=False,
            sentence=f"One more node like those here: not even an empty one takes it. It needs {needs}.",
        )


def free_elsewhere(situation: PodSituation) -> Iterator[Remedy]:
    """Says that what is free in all is enough, and why that is of no use."""
    for asked in situation.request.resources if len(situation.request.resources) == 1 else ():
        cards = [(name, card) for name, card in open_cards(situation, asked) if card.free > 0]
        each = mode_serving(asked.resource).on_cards(asked.total)
        free = sum(card.free for _, card in cards)
        if free < asked.total:
            continue
        of_unit = unit_bytes(units_in_force(situation.ledger, asked), asked.resource)
        text = amount(free, asked.resource, of_unit)
        if each.cards == 1 and asked.resource is ResourceClass.MEMORY:
            why = f"they lie on {counted(len(cards), 'card')}, and units of a pod have to lie on one"
        elif each.cards > 1:
            nodes = counted(len({name for name, _ in cards}), "node")
            why = f"they lie on {nodes}, and a pod gets all of its {each.cards} cards from one"
        else:
            continue
        yield Remedy(
            code="FreeElsewhere",
            helps=False,
            sentence=f"The {text} that are free in all: {why}.",
        )


def _capacity(share_node: ShareNode) -> tuple[int, int, str]:
    return sum(card.units for card in share_node.cards), len(share_node.cards), share_node.name


def _units_each(share_node: ShareNode) -> str:
    sizes = {card.units for card in share_node.cards}
    if len(sizes) != 1 or len(share_node.classes) != 1 or share_node.classes[0] is ResourceClass.CARD:
        return ""
    resource = share_node.classes[0]
    return f" of {amount(sizes.pop(), resource, unit_bytes([share_node.unit], resource))}"


def _needs(situation: PodSituation, asked: ResourceRequest) -> str:
    each = mode_serving(asked.resource).on_cards(asked.total)
    if asked.resource is ResourceClass.MEMORY:
        return f"a card of {asked_text(asked, units_in_force(situation.ledger, asked))}"
    return counted(each.cards, "card")
