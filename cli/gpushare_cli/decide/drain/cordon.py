"""The annotations by which people cordon cards: which cards they name, and how they change.

The plugin reads the words of ``gpushare.io/cordon``: UUIDs and indices, with commas or spaces in between.
"""

from collections.abc import Collection, Mapping, Sequence

from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_cli.errors import CannotLookError
from gpushare_core.api.names import CORDON_ANNOTATION, CORDON_REASON_ANNOTATION
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import printable

MAX_REASON_BYTES = 512


def named_cards(share_node: ObservedShareNode, words: Sequence[str]) -> list[ObservedCard]:
    """Returns the cards that ``words`` name, each once, by UUID or index.

    Raises:
        CannotLookError: a word names none; the text lists those that there are.
    """
    by_word = {str(card.index): card for card in share_node.cards}
    by_word |= {card.uuid: card for card in share_node.cards}
    if unknown := [word for word in words if word not in by_word]:
        raise CannotLookError(f"node {share_node.name} has no card {unknown[0]}; {_those(share_node)}")
    return list({by_word[word].uuid: by_word[word] for word in words}.values())


def _those(share_node: ObservedShareNode) -> str:
    cards = [f"{card.index} ({card.uuid})" for card in share_node.cards]
    if not cards:
        return "its plugin has reported none yet: kubectl get gpusharenode " + share_node.name
    return f"its cards are {', '.join(cards)}"


def cordon_words(annotations: Mapping[str, str]) -> list[str]:
    return annotations.get(CORDON_ANNOTATION, "").replace(",", " ").split()


def is_asked_for(card: ObservedCard, annotations: Mapping[str, str]) -> bool:
    """Returns whether the annotation names the card."""
    return not {card.uuid, str(card.index)}.isdisjoint(cordon_words(annotations))


def cordon_reasons(annotations: Mapping[str, str]) -> dict[str, str]:
    """Returns card UUID -> why it is cordoned, as people wrote it."""
    lines = annotations.get(CORDON_REASON_ANNOTATION, "").splitlines()
    parts = (line.partition(": ") for line in lines)
    return {uuid.strip(): reason.strip() for uuid, _, reason in parts if reason.strip()}


def cordoned_annotations(
    annotations: Mapping[str, str], cards: Collection[ObservedCard], *, reason: str
) -> Json:
    """Returns the annotations that cordon ``cards`` besides those that are: by UUID, for an index may mean
    another card after one was lost. With an empty ``reason`` an earlier one stays."""
    indices = {str(card.index) for card in cards}
    words = [word for word in cordon_words(annotations) if word not in indices]
    words += [card.uuid for card in cards if card.uuid not in words]
    said = printable(" ".join(reason.split()), max_bytes=MAX_REASON_BYTES)
    reasons = cordon_reasons(annotations) | ({card.uuid: said for card in cards} if said else {})
    return _annotations(words, reasons)


def uncordoned_annotations(annotations: Mapping[str, str], cards: Collection[ObservedCard]) -> Json:
    """Returns the annotations that cordon all but ``cards``; null for one that is empty then."""
    gone = {word for card in cards for word in (card.uuid, str(card.index))}
    reasons = {uuid: reason for uuid, reason in cordon_reasons(annotations).items() if uuid not in gone}
    return _annotations([word for word in cordon_words(annotations) if word not in gone], reasons)


def _annotations(words: Sequence[str], reasons: Mapping[str, str]) -> Json:
    lines = [f"{uuid}: {reason}" for uuid, reason in reasons.items()]
    return {
        CORDON_ANNOTATION: ",".join(words) or None,
        CORDON_REASON_ANNOTATION: "\n".join(lines) or None,
    }


def changes(annotations: Mapping[str, str], wanted: Json) -> bool:
    return any(annotations.get(key) != text for key, text in wanted.items())
