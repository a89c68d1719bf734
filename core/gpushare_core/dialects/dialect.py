"""The names of one system of GPU sharing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gpushare_core.dialects.codec import Codec
from gpushare_core.dialects.grants import ContainerGrant
from gpushare_core.dialects.visible_cards import NVIDIA_VARIABLE
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass

CARD_VARIABLE = "GPUSHARE_CARD"
"""In the environment of every container in every dialect: the UUIDs of its cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The names that workloads, nodes and tools of one system see.

    Class variables are the same in every dialect, because our programs rest on them.
    """

    name: str
    memory_resource: str = "gpushare.io/memory"
    """Of units of memory. A dialect without a name for a class uses ours."""
    slice_resource: str = "gpushare.io/slice"
    card_resource: str = "gpushare.io/card"
    count_resource: str = ""
    """Shows the number of cards in a node's capacity; empty where the system has none."""
    ignored_resources: tuple[str, ...] = ()
    """Pods may ask for these, without effect: no node offers them."""
    shared_resources: tuple[str, ...] = ()
    """Those of the names above that others' plugins offer as well: ours only on nodes with this dialect."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Of every node that shares: the system's tools and pods select nodes by them."""
    closed_cards_annotation: str = ""
    """On nodes: indices of cards that get no pods from the system's scheduler; empty where it has none."""
    inspect_path: str = ""
    """Where the extender serves the allocation of the dialect's nodes; empty where the system has no such
    path."""
    version_path: str = ""
    """Where the extender serves its version as plain text."""
    codec: Codec = field(default_factory=Codec)
    card_variables: tuple[str, ...] = (NVIDIA_VARIABLE, CARD_VARIABLE)
    """Environment variables of a container with the cards' UUIDs."""

    allocation_annotation: ClassVar[str] = "gpushare.io/allocation"
    index_variable: ClassVar[str] = "GPUSHARE_CARD_INDEX"
    unit_variable: ClassVar[str] = "GPUSHARE_UNIT"
    """What one unit is, as annotations write it. The kubelet's checkpoint keeps it."""
    units_variable: ClassVar[str] = "GPUSHARE_UNITS"
    memory_variable: ClassVar[str] = "GPUSHARE_MEMORY_MIB"
    """The container's share in MiB."""
    card_memory_variable: ClassVar[str] = "GPUSHARE_CARD_MEMORY_MIB"
    """The card's whole memory in MiB."""

    @property
    def resources(self) -> dict[str, ResourceClass]:
        """Name of an extended resource -> the class that it stands for."""
        return {
            self.memory_resource: ResourceClass.MEMORY,
            self.slice_resource: ResourceClass.SLICE,
            self.card_resource: ResourceClass.CARD,
        }

    def resource_name(self, resource: ResourceClass) -> str:
        return next(name for name, served in self.resources.items() if served is resource)

    def counts(self, registered: Collection[ResourceClass]) -> tuple[str, ...]:
        """Returns the names under which a node's capacity shows the number of its cards.

        ``registered``: classes that the node offers through the kubelet, which alone writes under their
        names.
        """
        taken = {self.resource_name(resource) for resource in registered}
        return (self.count_resource,) if self.count_resource and self.count_resource not in taken else ()

    def environment(self, grant: ContainerGrant) -> dict[str, str]:
        """Returns all variables of a container; values of cards are lists, in the order of ``grant``.

        Cards are named by UUID: an index means another card when a card is missing.
        """
        cards = grant.cards
        return {
            **self.codec.variables(grant),
            **dict.fromkeys(self.card_variables, ",".join(card.uuid for card in cards)),
            self.index_variable: ",".join(str(card.index) for card in cards),
            self.unit_variable: grant.unit,
            self.units_variable: str(grant.units),
            self.memory_variable: ",".join(str(card.memory // MIB) for card in cards),
            self.card_memory_variable: ",".join(str(card.card_memory // MIB) for card in cards),
        }


OWN_VARIABLES = (
    CARD_VARIABLE,
    Dialect.index_variable,
    Dialect.unit_variable,
    Dialect.units_variable,
    Dialect.memory_variable,
    Dialect.card_memory_variable,
)
"""In every container with units, in every dialect."""
