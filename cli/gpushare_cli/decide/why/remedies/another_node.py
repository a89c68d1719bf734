"""Which kind of node would take the pod if there was one more, and why free units elsewhere do not add up."""

from collections.abc import Iterator

from gpushare_cli.decide.scheduling.node_rules import NodeObstacle, PlacementRule, obstacles
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.asked import asked_text, unit_bytes
from gpushare_cli.decide.why.causes.nodes import KUBERNETES_TAINTS
from gpushare_cli.decide.why.causes.policy import named_node
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
    """Tries an empty node of each kind that there is; of those that take the pod names the smallest, and
    what else the pod asks of a node."""
    ledger, kinds = situation.ledger, dict[tuple[int, ...], ShareNode]()
    others = (name for name in ledger.node_names() if name not in situation.unable_nodes)
    for name in dict.fromkeys((*situation.allowed_nodes, *others)):
        if share_node := ledger.share_node(name):
            kinds.setdefault(
                (id(share_node.resources), *(card.units for card in share_node.cards)), share_node
            )
    taking = [kind for kind in kinds.values() if empty(kind).choose_together(situation.request)]
    if taking and (named := named_node(situation)):
        sentence = f"One more node, unless its name is {named}: the pod asks for that one."
        yield Remedy(code="AnotherNode", helps=False, sentence=sentence)
    elif smallest := min(
        taking, key=lambda kind: (bool(_obstacles(situation, kind)), _capacity(kind)), default=None
    ):
        cards = counted(len(smallest.cards), "card")
        but = "".join(f", {_but(obstacle)}" for obstacle in _obstacles(situation, smallest))
        yield Remedy(
            code="AnotherNode",
            helps=True,
            sentence=f"One more node like {smallest.name} ({cards}{_units_each(smallest)}){but}.",
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
        text = amount(free, asked.resource, unit_bytes(situation, asked.name))
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


def _obstacles(situation: PodSituation, share_node: ShareNode) -> list[NodeObstacle]:
    """Returns what would keep the pod off a new node that is like this one; a new node is not cordoned, and
    nothing is wrong with it."""
    node = (situation.cluster.nodes or {}).get(share_node.name)
    found = obstacles(written_pod(situation.pod).spec, node) if node else ()
    return [
        obstacle
        for obstacle in found
        if obstacle.rule is not PlacementRule.CORDON and not obstacle.key.startswith(KUBERNETES_TAINTS)
    ]


def _but(obstacle: NodeObstacle) -> str:
    """Returns in what the new node has to differ."""
    is_taint = obstacle.rule is PlacementRule.TAINT
    return f"but without the taint {obstacle.text}" if is_taint else f"but with {obstacle.text}"


def _capacity(share_node: ShareNode) -> tuple[int, int, str]:
    return sum(card.units for card in share_node.cards), len(share_node.cards), share_node.name


def _units_each(share_node: ShareNode) -> str:
    sizes = {card.units for card in share_node.cards}
    if len(sizes) != 1 or len(share_node.classes) != 1 or share_node.classes[0] is ResourceClass.CARD:
        return ""
    resource = share_node.classes[0]
    meaning = share_node.meaning_of(resource) if resource is ResourceClass.MEMORY else None
    return f" of {amount(sizes.pop(), resource, meaning[1] if meaning else None)}"


def _needs(situation: PodSituation, asked: ResourceRequest) -> str:
    each = mode_serving(asked.resource).on_cards(asked.total)
    if asked.resource is ResourceClass.MEMORY:
        return f"a card of {asked_text(situation, asked)}"
    return counted(each.cards, "card")
