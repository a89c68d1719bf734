"""The pod that has units of cards, as its annotation says: the ledger's only kind of entry."""

import sys
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from gpushare_core.allocation_annotation import MalformedAllocationError, decode_allocation
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import ANNOTATION_KEYS
from gpushare_core.placement.units import Meaning
from gpushare_core.scheduling.objects.legacy_pods import LegacyPod, LegacyShares, read_claims
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import unit_meaning


class CardUnits(msgspec.Struct, frozen=True, gc=False):
    card: str
    """UUID."""
    units: int


LAST_SECOND = 253_402_300_799
"""Of the year 9999: no time after it can be written."""


@lru_cache(maxsize=256)
def unix_seconds(created: str) -> int:
    """Returns the time in ``created``, written as ``metav1.Time``; 0 where it is none. Smaller than its text,
    and pods of one burst share it."""
    moment = read_rfc3339(created)
    seconds = int(moment.timestamp()) if moment else 0
    return seconds if 0 < seconds <= LAST_SECOND else 0


class Holder(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pod that has units of cards of one node, or has them reserved. The garbage collector does not track
    it: a cluster has tens of thousands."""

    uid: str
    namespace: str
    name: str
    node: str
    cards: tuple[CardUnits, ...]
    unit_meaning: Meaning | None = None
    """None stands for the node's own unit."""
    created: int = 0
    """Seconds since 1970; 0 where no watch has shown the pod."""
    other_meanings: tuple[tuple[str, Meaning], ...] = ()
    """Card UUID and unit, for cards with another unit: a pod of several classes has cards of each."""

    @property
    def pod(self) -> PodReference:
        return PodReference(self.namespace, self.name, self.uid)

    @property
    def shares(self) -> dict[str, int]:
        """Card UUID -> units."""
        return {card.card: card.units for card in self.cards}

    def meaning_of(self, card: str) -> Meaning | None:
        """Returns the unit in which the pod has units of ``card`` (UUID)."""
        if self.other_meanings:  # of few pods
            return dict(self.other_meanings).get(card, self.unit_meaning)
        return self.unit_meaning

    @property
    def meanings(self) -> set[Meaning | None]:
        return {self.meaning_of(card.card) for card in self.cards}

    def counts_as(self, other: "Holder") -> bool:
        """Returns whether both have the same on the same node, as a reservation and its allocation do."""
        return (
            self.node == other.node
            and self.cards == other.cards
            and self.unit_meaning == other.unit_meaning
            and self.other_meanings == other.other_meanings
        )

    def units_of(self, card: str) -> int:
        return sum(own.units for own in self.cards if own.card == card)


class PodUpdate(msgspec.Struct, frozen=True, gc=False):
    """A pod in a watch event or in a list."""

    uid: str
    holder: Holder | None = None
    """None: the pod has no units."""
    message: str = ""
    """Why an annotation that is there is not believed."""
    legacy: LegacyPod | None = None
    """What a replaced system wrote, on a pod without our annotation, or with that of another pod."""


def legacy_holder(legacy: LegacyPod, shares: LegacyShares, node: str) -> Holder:
    return Holder(
        uid=legacy.pod.uid,
        namespace=legacy.pod.namespace,
        name=legacy.pod.name,
        node=node,
        cards=tuple(CardUnits(card, units) for card, units in shares.cards.items()),
        unit_meaning=shares.unit_meaning,
        created=unix_seconds(legacy.created),
    )


def contradiction(known: Holder, update: PodUpdate) -> PodUpdate:
    """Returns ``update`` of a pod that is ``known`` as bound, with a message where one of them is wrong."""
    seen = update.holder
    if seen is not None and seen.node != known.node:
        message = (
            f"its annotation names node {seen.node}, and named {known.node} before: its units count on both"
        )
    elif seen is None and not (update.message or update.legacy):
        message = "its annotation is gone: the units that it named count until the pod is gone"
    else:
        return update
    return PodUpdate(update.uid, seen, f"pod {known.pod}: {message}")


class WatchedMetadata(msgspec.Struct):
    """Source: ``metav1.ObjectMeta``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None
    created: str | None = msgspec.field(name="creationTimestamp", default=None)
    """Null is how Go writes a time that is not set."""


class WatchedPod(msgspec.Struct):
    """Source: ``metav1.PartialObjectMetadata``: the watch brings no more of a pod."""

    metadata: WatchedMetadata


_DECODER = msgspec.json.Decoder(WatchedPod)


def read_pod(raw: msgspec.Raw | bytes) -> PodUpdate:
    """Returns what the pod in ``raw`` (JSON with ``metadata``) has by its annotations.

    Raises:
        msgspec.DecodeError: ``raw`` is not the JSON of an object.
    """
    metadata = _DECODER.decode(raw).metadata
    text = (metadata.annotations or {}).get(Dialect.allocation_annotation)
    if text is None:
        return _legacy(metadata)
    try:
        return PodUpdate(metadata.uid, _holder(metadata, text))
    except MalformedAllocationError as error:
        # Such as that of the pod that this one is a copy of: the other annotations are still believed.
        message = f"pod {metadata.namespace}/{metadata.name}: {Dialect.allocation_annotation}: {error}"
        return replace(_legacy(metadata), message=message)


def _legacy(metadata: WatchedMetadata) -> PodUpdate:
    """Returns what replaced systems wrote: nothing for nearly every pod."""
    annotations = metadata.annotations or {}
    if annotations.keys().isdisjoint(ANNOTATION_KEYS):
        return PodUpdate(metadata.uid)
    pod = PodReference(metadata.namespace, metadata.name, metadata.uid)
    claims, problems = read_claims(annotations)
    message = f"pod {pod}: {'; '.join(problems)}" if problems else ""
    legacy = LegacyPod(pod=pod, claims=claims, created=metadata.created or "") if claims else None
    return PodUpdate(metadata.uid, message=message, legacy=legacy)


def _holder(metadata: WatchedMetadata, text: str) -> Holder:
    """Interns what many pods share, and what GPUShareNodes name too: it stays in memory once."""
    allocation = decode_allocation(text, uid=metadata.uid)
    return Holder(
        uid=sys.intern(metadata.uid),
        namespace=sys.intern(metadata.namespace),
        name=sys.intern(metadata.name),
        node=sys.intern(allocation.node),
        cards=tuple(CardUnits(sys.intern(card), units) for card, units in allocation.held().items()),
        unit_meaning=unit_meaning(allocation.unit),
        created=unix_seconds(metadata.created or ""),
        other_meanings=tuple(
            (sys.intern(card), meaning)
            for card, unit in allocation.other_units.items()
            if (meaning := unit_meaning(unit))
        )
        if allocation.other_units
        else (),
    )
