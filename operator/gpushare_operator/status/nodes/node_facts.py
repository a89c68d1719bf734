"""Facts about a policy's nodes that are worth an Event: a sick card, a lost node, a cordon that names no
card."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gpushare_core.api.names import CARDS_CORDONED, CARDS_HEALTHY
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry
from gpushare_operator.cluster.nodes.observed_states import ObservedState

UNKNOWN_CARDS = "UnknownCards"
"""Reason of ``CARDS_CORDONED`` if the annotation names something that is no card."""


class FactKind(StrEnum):
    """Reason of the Event when the fact begins."""

    CARD_SICK = "CardSick"
    NODE_LOST = "NodeLost"
    CORDON_UNKNOWN = "CordonNamesNoCard"


OVER = {
    FactKind.CARD_SICK: ("CardBack", "{subject} of node {node} is healthy again, or gone"),
    FactKind.NODE_LOST: ("NodeBack", "node {node} is Ready again, or no longer in the policy"),
    FactKind.CORDON_UNKNOWN: (
        "CordonCorrected",
        "every entry in the cordon of GPUShareNode {node} names a card",
    ),
}
"""Reason and text of the Event when the fact ends."""


class Fact(NamedTuple):
    """Something about a node, with an Event when it begins and one when it ends."""

    kind: FactKind
    node: str
    subject: str = ""
    """The card, in words."""


class Notice(NamedTuple):
    """An Event to be posted."""

    reason: str
    note: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class FactFinder:
    """Finds the facts about one node of a policy."""

    policy: str

    def __call__(self, state: ObservedState) -> Entry[dict[Fact, str]]:
        if state.share is None or state.share.policy != self.policy:
            return NOTHING
        facts = dict(_facts(state))
        return Entry(facts) if facts else NOTHING


def _facts(state: ObservedState) -> Iterator[tuple[Fact, str]]:
    name, share = state.name, state.share
    if state.node is None or not state.node.ready:
        yield (
            Fact(FactKind.NODE_LOST, name),
            f"node {name} is not Ready: its pods keep their units, and no new pod comes there",
        )
    if share is None:
        return
    health, cordon = share.conditions.get(CARDS_HEALTHY), share.conditions.get(CARDS_CORDONED)
    for card in share.sick_cards:
        why = f": {health.message}" if health and health.message else ""
        yield Fact(FactKind.CARD_SICK, name, card), f"{card} of node {name} takes no new pod{why}"
    if cordon and cordon.reason == UNKNOWN_CARDS:
        yield Fact(FactKind.CORDON_UNKNOWN, name), f"GPUShareNode {name}: {cordon.message}"
