"""A difference between books, and the kinds that there are."""

from dataclasses import dataclass
from enum import StrEnum


class Rule(StrEnum):
    """What must hold."""

    CAPACITY = "I1"
    """No card is granted beyond its capacity, none serves two classes."""
    ENVIRONMENT = "I2"
    """A container's environment names exactly the cards whose units the kubelet holds for it."""
    AGREEMENT = "I3"
    """Within 5 s of quiet all books agree."""
    RELEASE = "I4"
    """Units are free again only when the kubelet has released them."""
    FORGERY = "I5"
    """Nothing that a pod's author writes changes any book."""


class Kind(StrEnum):
    """The kinds of differences, each a constant for programs."""

    OVER_CAPACITY = "OverCapacity"
    """A book grants more of a card than its memory has room for."""
    OVER_COUNTED = "OverCounted"
    """What annotations promise, or the extender counts, is more of a card than it has room for."""
    GRANTED_TWICE = "GrantedTwice"
    """The kubelet holds one unit for two containers that run side by side."""
    TWO_CLASSES = "TwoClasses"
    """A book has units of two classes on one card."""
    WRONG_SHAPE = "WrongShape"
    """A container's units do not lie on cards as its class has it: memory on one, slices on distinct ones."""
    UNKNOWN_UNIT = "UnknownUnit"
    """The kubelet holds a unit that lies on no card of the status."""
    CAPACITY_DIFFERS = "CapacityDiffers"
    """A card has other units in one book than in another."""
    ENVIRONMENT_DIFFERS = "EnvironmentDiffers"
    """A container sees other cards, or other amounts, than the kubelet holds for it."""
    CARDS_UNASKED = "CardsUnasked"
    """A running container asks for no card, and its author has set what shows it the cards of its node."""
    SHARES_DIFFER = "SharesDiffer"
    """Books have a container, or a pod, with other units or on other cards."""
    SUMS_DIFFER = "SumsDiffer"
    """A book's sums are not those of its own entries."""
    UNCOUNTED = "Uncounted"
    """The kubelet holds more of a card than a book counts: it calls units free that are held."""
    STALE_HOLDER = "StaleHolder"
    """A book counts a pod that has ended and that the kubelet holds nothing for."""
    ORPHAN_MARK = "OrphanMark"
    """The status says of a holder that the API server does not have it, or does not say it, and is wrong."""
    LOCK_DIFFERS = "LockDiffers"
    """Books have a card of mode Mixed serve different classes."""
    FORGOTTEN_UNITS = "ForgottenUnits"
    """A running container sees units that it asks for, and the kubelet holds none for it."""
    WITHOUT_UNITS = "WithoutUnits"
    """A running container asks for units, and no book has any for it: it was never given some."""
    DIALECT_DIFFERS = "DialectDiffers"
    """What a pod's annotations say in the words of its node's dialect is not what ours says."""
    RESERVED = "Reserved"
    """The extender keeps units for a bind that is under way."""
    RELEASED_EARLY = "ReleasedEarly"
    """A book that counted units does not any more, while the kubelet holds them all along."""
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
        """Whether it may never be seen, not even while pods come and go.

        The others are part of a pod's way through the books, and wrong only once all has been quiet for 5 s.
        """
        return self in _AT_ONCE


_RULES = {
    Kind.OVER_CAPACITY: Rule.CAPACITY,
    Kind.OVER_COUNTED: Rule.CAPACITY,
    Kind.GRANTED_TWICE: Rule.CAPACITY,
    Kind.TWO_CLASSES: Rule.CAPACITY,
    Kind.WRONG_SHAPE: Rule.CAPACITY,
    Kind.UNKNOWN_UNIT: Rule.CAPACITY,
    Kind.ENVIRONMENT_DIFFERS: Rule.ENVIRONMENT,
    Kind.CARDS_UNASKED: Rule.ENVIRONMENT,
    Kind.UNCOUNTED: Rule.RELEASE,
    Kind.RELEASED_EARLY: Rule.RELEASE,
    Kind.FORGED: Rule.FORGERY,
}

# A pod that its kubelet gave another card counts on both until everybody has seen that: no author did it.
_AT_ONCE = frozenset(
    {
        Kind.OVER_CAPACITY,
        Kind.GRANTED_TWICE,
        Kind.TWO_CLASSES,
        Kind.WRONG_SHAPE,
        Kind.ENVIRONMENT_DIFFERS,
        Kind.RELEASED_EARLY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Difference:
    """One thing that is not as it must be."""

    node: str
    kind: Kind
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
        """What two sightings of the same difference have in common, however its figures change."""
        return (self.node, self.kind, self.card, self.pod, self.container)

    def __str__(self) -> str:
        return f"{self.rule} {self.kind} on {self.node}: {self.sentence}"
