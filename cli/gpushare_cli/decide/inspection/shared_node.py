"""What people are shown of one node that shares its cards."""

from collections.abc import Sequence

from msgspec import Struct

from gpushare_cli.decide.inspection.shared_card import CardHolder, SharedCard


class NodeResource(Struct, frozen=True, kw_only=True, rename="camel"):
    """One extended resource of a node."""

    name: str
    unit: str
    total_units: int
    """Of the cards that serve it, or are open to it."""
    held_units: int
    free_units: int
    """Of the cards that take new pods."""
    largest_free: int
    """The most that one pod can get now."""


class NodeProblem(Struct, frozen=True, kw_only=True, rename="camel"):
    reason: str
    """For programs."""
    message: str
    advice: str = ""
    """What to do, a sentence."""
    command: str = ""
    """To type next."""
    card: int | None = None
    """The card's index, where it is about one."""


UNREADABLE = "Unreadable"
"""Reason of a node of which nothing but the name can be read."""
UNAVAILABLE = "Unavailable"
"""In ``ShownIsolation.given``."""


class ShownIsolation(Struct, frozen=True, kw_only=True, rename="camel"):
    """What keeps the containers of a node to the memory of their units."""

    asked: str
    """By the policy: None, Hook or Driver."""
    given: str = ""
    """What new containers get now: None, Hook or Driver; Unavailable: what is asked for cannot be had, and no
    new pod comes. Empty: the plugin does not say."""
    in_force: str = ""
    """Whether what containers were given holds them: True, False or Unknown; empty: none was given any."""
    on_excess: str = ""
    """Of a container that has more all the same: Report or Evict."""
    grace_seconds: int = 0
    """With Evict: how long it may have more."""


class SharedNode(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    policy: str = ""
    mode: str = ""
    """In force: the policy may ask for another one."""
    dialect: str = ""
    unit: str = ""
    """In force, as text; of several classes with commas between."""
    reserved_bytes: int = 0
    """Of each card."""
    strategy: str = ""
    measures: str = ""
    """What is measured: Off, Cards or Containers; empty: not known."""
    unmeasured_reason: str = ""
    """Why the use of cards, or of containers, is not known."""
    isolation: ShownIsolation | None = None
    """None: no container has any, and none is asked for."""
    plugin_version: str = ""
    takes_pods: bool = True
    closed_reason: str = ""
    resources: Sequence[NodeResource] = ()
    memory_bytes: int = 0
    held_bytes: int = 0
    free_bytes: int = 0
    used_bytes: int | None = None
    problems: Sequence[NodeProblem] = ()
    cards: Sequence[SharedCard] = ()

    @property
    def holders(self) -> Sequence[CardHolder]:
        return [holder for card in self.cards for holder in card.holders]
