"""The annotations of a node's dialect on a pod name the same cards as our own annotation."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.difference import ANNOTATION, LOOK_AT_PLUGIN, Difference, DifferenceKind, list_text
from gpushare_core.audit.records import NodeRecords, ShareNodeRecord
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.dialects.codec import Codec, shares_of_class
from gpushare_core.dialects.legacy import MalformedAnnotationsError
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import ResourceClass


def dialect_differences(records: NodeRecords, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields the pods whose annotations of the dialect name other cards than our own annotation.

    A pod without annotations of the dialect was bound by somebody else, or has a class that the dialect
    lacks.
    """
    share_node = records.share_node
    dialect = DIALECTS.get(share_node.dialect) if share_node else None
    if share_node is None or dialect is None:
        return
    for claim in claims.values():
        words = [key for key in dialect.codec.bind_keys if key in claim.pod.annotations]
        # Tools of the dialect do not look at pods of a class for which it has no annotations.
        has_words = dialect.codec.assignment_annotations(claim.allocation.resource, 0)
        if words and claim.allocation.node == records.node and has_words:
            ours = _indices(claim, share_node)
            theirs = _indices_in_dialect(dialect.codec, claim.pod.annotations)
            if ours is not None and theirs != ours:
                said = "nothing that makes sense" if theirs is None else list_text(map(str, theirs))
                yield Difference.of_pod(
                    records,
                    claim.pod.key,
                    DifferenceKind.DIALECT_DIFFERS,
                    f"of {claim.pod.key}: {ANNOTATION} gives it the cards of index"
                    f" {list_text(map(str, ours))}, and in the words of {dialect.name} ({list_text(words)})"
                    f" they are {said}: tools of {dialect.name} show wrong cards; {LOOK_AT_PLUGIN}",
                )


def _indices(claim: Claim, share_node: ShareNodeRecord) -> frozenset[int] | None:
    """Returns None where the dialect cannot express the allocation."""
    held = [card for card, units in shares_of_class(claim.allocation).items() if units]
    if claim.allocation.resource is ResourceClass.MEMORY and len(held) != 1:
        return None
    cards = [share_node.card(uuid) for uuid in held]
    return frozenset(card.index for card in cards if card) if all(cards) else None


def _indices_in_dialect(codec: Codec, annotations: Mapping[str, str]) -> frozenset[int] | None:
    try:
        legacy = codec.read_legacy(annotations)
    except MalformedAnnotationsError:
        return None
    return frozenset(legacy.cards) if legacy else None
