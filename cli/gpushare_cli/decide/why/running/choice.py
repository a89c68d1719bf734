"""Why a pod has the cards that it has, as far as that can be known afterwards."""

from collections.abc import Iterator, Sequence

from gpushare_cli.decide.why.explanation import CardOfPod
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import listed
from gpushare_core.scheduling.ledger.node_ledger import CardChoice, NodeLedger

EXTENDER_KNOWS = (
    "What counted when it was bound is in the extender's log"
    " (kubectl logs -n gpushare-system {log} | grep {name})."
)


def choice_sentences(situation: PodSituation, cards: Sequence[CardOfPod]) -> list[str]:
    node = situation.ledger.node(situation.node)
    if node is None or node.share_node is None or not situation.request.resources:
        return []
    strategy = node.share_node.strategy.value
    sentences = [f"Cards of {situation.node} are chosen by strategy {strategy}.", *_not_shown_yet(situation)]
    again = _chosen_again(situation, node)
    present = {card.uuid for card in cards}
    if not again:
        return sentences
    if {card for choice in again for card in choice.units} == present:
        reasons = listed(sorted({choice.reason.value for choice in again}))
        return [*sentences, f"By what is free now it would get the same again: {reasons}."]
    others = [card.index for card in node.cards() if any(card.uuid in choice.units for choice in again)]
    would = listed([str(index) for index in others], 8)
    log = situation.cluster.extender_log
    return [
        *sentences,
        f"By what is free now it would get card {would}: other pods have come or gone since.",
        *([EXTENDER_KNOWS.format(log=log, name=situation.name)] if log else []),
    ]


def _not_shown_yet(situation: PodSituation) -> Iterator[str]:
    observed = situation.share_nodes.get(situation.node)
    uid = situation.kube_pod.metadata.uid
    shown = (share.uid for card in (observed.cards if observed else ()) for share in card.pods or ())
    if uid not in shown:
        yield "Its annotation says so; the GPUShareNode does not show the pod yet."


def _chosen_again(situation: PodSituation, node: NodeLedger) -> list[CardChoice]:
    """Returns what the pod would get of its node now if it had nothing."""
    uid = situation.kube_pod.metadata.uid
    return node.choose_together(situation.request, gone={uid})
