"""What one pod holds of the cards of its node: the ledger's only kind of entry."""

import sys
from dataclasses import dataclass

import msgspec

from gpushare_core.books.allocation import MalformedAllocationError, decode_allocation
from gpushare_extender.ledger.share_node import unit_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """Units of cards by UUID, counted in units of ``unit_size`` bytes (0: in the node's own unit)."""

    uid: str
    namespace: str
    name: str
    node: str
    cards: tuple[tuple[str, int], ...]
    unit_size: int = 0

    def units_of(self, card: str) -> int:
        return sum(units for uuid, units in self.cards if uuid == card)


@dataclass(frozen=True, slots=True)
class PodNews:
    """A pod as its metadata tell of it. ``complaint`` says why a present annotation counts as nothing."""

    uid: str
    holding: Holding | None = None
    complaint: str = ""


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta


_DECODER = msgspec.json.Decoder(_Pod)


def read_pod(raw: msgspec.Raw | bytes, *, annotation: str) -> PodNews:
    """What the pod in ``raw`` (JSON with ``metadata``) holds by its ``annotation``.

    Raises:
        msgspec.DecodeError: not the JSON of an object.
    """
    meta = _DECODER.decode(raw).metadata
    text = (meta.annotations or {}).get(annotation)
    if text is None:
        return PodNews(meta.uid)
    try:
        return PodNews(meta.uid, _holding(meta, text))
    except MalformedAllocationError as error:
        return PodNews(meta.uid, complaint=f"pod {meta.namespace}/{meta.name}: {annotation}: {error}")


def _holding(meta: _Meta, text: str) -> Holding:
    allocation = decode_allocation(text)
    return Holding(
        uid=meta.uid,
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        node=sys.intern(allocation.node),
        cards=tuple((sys.intern(card), units) for card, units in allocation.held().items()),
        unit_size=unit_size(allocation.unit),
    )
