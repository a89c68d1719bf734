"""Differences between books: their kinds, how their sentences name things, and which of them have lasted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from gpushare_core.audit.records import ContainerKey, NodeRecords, PodKey

PODRESOURCES = "the kubelet's PodResources"
CHECKPOINT = "the kubelet's checkpoint"
ANNOTATION = "the pod's annotation"
STATUS = "the GPUShareNode"
ENVIRONMENT = "the container's environment"
LEDGER = "the extender"
DRIVER = "the driver or the inventory"

DELETE_PODS = "delete some of the pods on that card, and report a bug: this must never happen"
LOOK_AT_PLUGIN = (
    "if this stays, see the condition LedgerInSync of the GPUShareNode and the log of the node's plugin"
)
LOOK_AT_EXTENDER = "if this stays, see the extender's log; restarting the extender makes it count again"


def card_name(records: NodeRecords, uuid: str) -> str:
    """Returns the card's index, where the status says it, and its UUID."""
    card = records.share_node.card(uuid) if records.share_node else None
    return f"card {card.index} ({uuid})" if card else f"card {uuid}"


def shares_text(shares: Mapping[str, int] | None) -> str:
    """``shares``: card UUID -> units."""
    if not shares:
        return "nothing"
    return " and ".join(f"{units} of {card}" for card, units in sorted(shares.items()))


def list_text(words: Iterable[str], limit: int = 5) -> str:
    """Returns the first ``limit`` of ``words``, and how many more there are."""
    every = sorted(set(words))
    rest = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + rest


class Rule(StrEnum):
    """What must hold."""

    CAPACITY = "I1"
    """No card is granted beyond its capacity, and none serves two classes."""
    ENVIRONMENT = "I2"
    """A container's environment names exactly the cards whose units the kubelet holds for it."""
    AGREEMENT = "I3"
    """Within 5 s of quiet all books agree."""
    RELEASE = "I4"
    """Units are free again only when the kubelet has released them."""
    FORGERY = "I5"
    """Nothing that a pod's author writes changes any book."""


class DifferenceKind(StrEnum):
    OVER_CAPACITY = "OverCapacity"
    """A book grants more of a card than its memory has room for."""
    OVER_COUNTED = "OverCounted"
    """Annotations, or the extender's ledger, have more units of a card than it has room for."""
    GRANTED_TWICE = "GrantedTwice"
    """The kubelet holds one unit for two containers that run side by side."""
    TWO_CLASSES = "TwoClasses"
    """A book has units of two classes on one card."""
    WRONG_SHAPE = "WrongShape"
    """A container has memory of several cards, or several slices of one."""
    UNKNOWN_UNIT = "UnknownUnit"
    """The kubelet holds a unit that lies on no card of the status."""
    CAPACITY_DIFFERS = "CapacityDiffers"
    """A card has other units in one book than in another."""
    ENVIRONMENT_DIFFERS = "EnvironmentDiffers"
    """A container sees other cards, or other amounts, than the kubelet holds for it."""
    CARDS_UNASKED = "CardsUnasked"
    """A running container asks for no card, and its pod sets a variable that shows it the node's cards."""
    SHARES_DIFFER = "SharesDiffer"
    """Books have a container, or a pod, with other units or on other cards."""
    SUMS_DIFFER = "SumsDiffer"
    """A book's sums are not those of its own entries."""
    UNCOUNTED = "Uncounted"
    """The kubelet holds more of a card than a book counts: that book calls units free that are in use."""
    STALE_HOLDER = "StaleHolder"
    """A book counts a pod that has ended and that the kubelet holds nothing for."""
    ORPHAN_MARK = "OrphanMark"
    """The status is wrong about whether the API server has a holder's pod."""
    LOCK_DIFFERS = "LockDiffers"
    """Books have a card of mode Mixed serve different classes."""
    FORGOTTEN_UNITS = "ForgottenUnits"
    """A running container sees units that it asks for, and the kubelet holds none for it."""
    WITHOUT_UNITS = "WithoutUnits"
    """A running container asks for units, and no book has any for it: it was never given any."""
    DIALECT_DIFFERS = "DialectDiffers"
    """The annotations of the node's dialect on a pod say something else than our own annotation."""
    RESERVED = "Reserved"
    """The extender keeps units for a bind that is under way."""
    RELEASED_EARLY = "ReleasedEarly"
    """A book does not count units any more that the kubelet has held all along."""
    FORGED = "Forged"
    """A book counts units for a pod by something that the pod's author wrote."""
    TWO_NODES = "TwoNodes"
    """Books have one pod on two nodes."""
    UNWRITABLE = "Unwritable"
    """A pod has more annotations than Kubernetes allows: nobody can write to it, and its cards stay taken."""
    UNREADABLE = "Unreadable"
    """A book was there and could not be read."""

    @property
    def rule(self) -> Rule:
        return _RULES.get(self, Rule.AGREEMENT)

    @property
    def at_once(self) -> bool:
        """Whether it is wrong whenever it is seen.

        The others appear while pods come and go, and are wrong only after 5 s of quiet.
        """
        return self in _AT_ONCE


_RULES = {
    DifferenceKind.OVER_CAPACITY: Rule.CAPACITY,
    DifferenceKind.OVER_COUNTED: Rule.CAPACITY,
    DifferenceKind.GRANTED_TWICE: Rule.CAPACITY,
    DifferenceKind.TWO_CLASSES: Rule.CAPACITY,
    DifferenceKind.WRONG_SHAPE: Rule.CAPACITY,
    DifferenceKind.UNKNOWN_UNIT: Rule.CAPACITY,
    DifferenceKind.ENVIRONMENT_DIFFERS: Rule.ENVIRONMENT,
    DifferenceKind.CARDS_UNASKED: Rule.ENVIRONMENT,
    DifferenceKind.UNCOUNTED: Rule.RELEASE,
    DifferenceKind.RELEASED_EARLY: Rule.RELEASE,
    DifferenceKind.FORGED: Rule.FORGERY,
}

# Not FORGED: a pod that its kubelet gave another card counts on both cards until all programs have seen that.
_AT_ONCE = frozenset(
    {
        DifferenceKind.OVER_CAPACITY,
        DifferenceKind.GRANTED_TWICE,
        DifferenceKind.TWO_CLASSES,
        DifferenceKind.WRONG_SHAPE,
        DifferenceKind.ENVIRONMENT_DIFFERS,
        DifferenceKind.RELEASED_EARLY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Difference:
    """One thing that is not as it must be."""

    node: str
    kind: DifferenceKind
    card: str = ""
    """UUID; empty where it is about no single card."""
    pod: str = ""
    """``namespace/name``; empty where it is about no single pod."""
    container: str = ""
    uid: str = ""
    """Of the pod, where it is known."""
    sentence: str
    """Who says what, what that means, and what to do."""

    @property
    def rule(self) -> Rule:
        return self.kind.rule

    @property
    def identity(self) -> tuple[str, str, str, str, str]:
        """The same for each sighting of a difference, however its figures change."""
        return (self.node, self.kind, self.card, self.pod, self.container)

    def __str__(self) -> str:
        return f"{self.rule} {self.kind} on {self.node}: {self.sentence}"

    @classmethod
    def of_pod(
        cls,
        records: NodeRecords,
        pod: PodKey,
        kind: DifferenceKind,
        sentence: str,
        *,
        container: str = "",
        card: str = "",
    ) -> Self:
        return cls(
            node=records.node,
            kind=kind,
            card=card,
            pod=str(pod),
            uid=pod.uid,
            container=container,
            sentence=sentence,
        )

    @classmethod
    def of_container(
        cls, records: NodeRecords, key: ContainerKey, kind: DifferenceKind, sentence: str
    ) -> Self:
        return cls.of_pod(records, key.pod, kind, sentence, container=key.container)

    @classmethod
    def of_card(
        cls, records: NodeRecords, card: str, kind: DifferenceKind, text: str, *, advice: str = LOOK_AT_PLUGIN
    ) -> Self:
        """``card``: UUID; the sentence begins with the card, and ends with ``advice``."""
        sentence = f"{card_name(records, card)}: {text}; {advice}"
        return cls(node=records.node, kind=kind, card=card, sentence=sentence)


LASTING_SECONDS = 5.0
"""All books agree within this time once it is quiet: a difference that lasts longer is no delay."""

_Identity = tuple[str, str, str, str, str]


@dataclass(slots=True)
class LastingDifferences:
    """Since when each difference has been seen at every look. Moments are seconds of one clock."""

    seconds: float = LASTING_SECONDS
    _since: dict[_Identity, float] = field(default_factory=dict, init=False)

    def look(self, seen: Iterable[Difference], *, now: float) -> list[Difference]:
        """Returns those of ``seen``, in their order, that were seen at every look for ``seconds``."""
        present = list(seen)
        self._since = {found.identity: self._since.get(found.identity, now) for found in present}
        return [found for found in present if self._has_lasted(self._since[found.identity], now)]

    def seconds_until_due(self, *, now: float) -> float | None:
        """Returns the seconds until another difference of the last look will have lasted, or None."""
        ends = [since + self.seconds for since in self._since.values() if not self._has_lasted(since, now)]
        return min(ends) - now if ends else None

    def _has_lasted(self, since: float, now: float) -> bool:
        return now >= since + self.seconds
