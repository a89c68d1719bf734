"""Events on the pods of sick cards: one for each pod and fault. Pure."""

from collections.abc import Iterator, Mapping

from gpushare_core.api.share_node import CardFault, CardStatus, NodeStatus, PodShare
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import PodName

CARD_UNHEALTHY = "CardUnhealthy"
"""Reason."""

_Occasion = tuple[str, str, str]
"""UID of a pod, UUID of a card, since when the card is sick."""


def fault_events(before: NodeStatus, after: NodeStatus) -> list[PodEvent]:
    """Returns the Events that follow from a change of the status, and from nothing else: a plugin that is
    restarted in between repeats none."""
    known = {occasion for occasion, _, _, _ in _occasions(before)}
    found: Mapping[_Occasion, PodEvent] = {
        occasion: _event(card, fault, share)
        for occasion, card, fault, share in _occasions(after)
        if occasion not in known
    }
    return [*found.values()]


def _occasions(status: NodeStatus) -> Iterator[tuple[_Occasion, CardStatus, CardFault, PodShare]]:
    sick = {fault.uuid: fault for fault in status.faults if not fault.cleared}
    for card in status.cards:
        if fault := sick.get(card.uuid):
            for share in card.pods:
                yield (share.uid, card.uuid, fault.since), card, fault, share


def _event(card: CardStatus, fault: CardFault, share: PodShare) -> PodEvent:
    note = (
        f"card {card.index} ({card.uuid}) of this pod is sick: {fault.message}. No new pod gets it, and"
        " this one stays: delete it, so that its controller creates it again on another card"
    )
    return PodEvent(
        pod=PodName(share.namespace, share.name),
        uid=share.uid,
        reason=CARD_UNHEALTHY,
        note=note,
        warning=True,
        action="ClosingCard",
        occasion=f"{card.uuid}/{fault.since}",
    )
