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
