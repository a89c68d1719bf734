"""What a policy would change that is not applied yet."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class NodeEffect(StrEnum):
    """What would happen to a node."""

    GAINS = "Gains"
    """It begins to share its cards."""
    LOSES = "Loses"
    """It shares its cards no more; its pods go on running."""
    DIVIDES = "Divides"
    """Its cards are divided anew at once: no pod holds units of them."""
    WAITS = "Waits"
    """It takes no new pod until those are gone that hold units of it; then its cards are divided anew."""
    KEEPS = "Keeps"
    """It goes on by its former unit while pods hold units of it: ``unitChange: Keep``."""
    SETTINGS = "Settings"
    """Its cards stay as they are; something else is asked of it, such as a strategy or another policy."""
    NONE = "None"


class PodInTheWay(msgspec.Struct, frozen=True, kw_only=True, rename="camel", order=True):
    """A pod that holds units."""

    namespace: str
    name: str
    units: int


class ClassUnits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", order=True):
    resource: str
    """Memory, slice or card."""
    unit: str
    units: int


class NodeSharing(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a node shares its cards; empty where it does not."""

    policy: str = ""
    mode: str = ""
    unit: str = ""
    isolation: str = ""
    """What is asked for: Hook or Driver; empty: nothing."""
    cards: int | None = None
    """None where nobody knows before a plugin has looked."""


class NodeChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    node: str
    effect: NodeEffect
    before: NodeSharing
    after: NodeSharing
    pods: Sequence[PodInTheWay] = ()
    """That hold units of its cards."""

    def concerns(self, policy: str) -> bool:
        """Returns whether anything changes, or the policy has the node."""
        return self.effect is not NodeEffect.NONE or policy in (self.before.policy, self.after.policy)


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    is_new: bool
    checked_by: str
    """``APIServer`` by a dry run, or ``Client``, which knows fewer rules."""
    refusal: str = ""
    """Why the API server would not take it; then nothing else is known."""
    nodes: Sequence[NodeChange] = ()
    """Of the nodes that the policy has or would have, and of all that change; by name."""
    lost: dict[str, str] = msgspec.field(default_factory=dict)
    """Nodes that it asks for and does not get -> the older policy that has them."""
