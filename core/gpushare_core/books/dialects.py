"""How a system of GPU sharing names things. One row per system; the rows for others' systems come later."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare_core.placement.requests import ResourceClass


@dataclass(frozen=True, slots=True)
class Dialect:
    """The names that workloads, nodes and tools of one system see.

    A system that has no resource of a class uses the name of ``GPUSHARE`` for it.
    """

    name: str
    memory_resource: str
    slice_resource: str
    card_resource: str
    allocation_annotation: str
    inspect_path: str
    """Where the extender serves its books over HTTP."""
    card_variables: tuple[str, ...]
    """Environment variables of a container that get the card's UUID."""
    index_variable: str
    units_variable: str
    memory_variable: str
    """Gets the container's share in MiB."""
    card_memory_variable: str
    """Gets the card's whole memory in MiB."""

    @property
    def resources(self) -> dict[str, ResourceClass]:
        """Name of an extended resource -> the class that it stands for."""
        return {
            self.memory_resource: ResourceClass.MEMORY,
            self.slice_resource: ResourceClass.SLICE,
            self.card_resource: ResourceClass.CARD,
        }

    def name_of(self, resource: ResourceClass) -> str:
        """Returns the name of the extended resource that stands for ``resource``."""
        return next(name for name, each in self.resources.items() if each is resource)


GPUSHARE = Dialect(
    name="gpushare.io",
    memory_resource="gpushare.io/memory",
    slice_resource="gpushare.io/slice",
    card_resource="gpushare.io/card",
    allocation_annotation="gpushare.io/allocation",
    inspect_path="/gpushare/inspect",
    card_variables=("NVIDIA_VISIBLE_DEVICES", "GPUSHARE_CARD"),
    index_variable="GPUSHARE_CARD_INDEX",
    units_variable="GPUSHARE_UNITS",
    memory_variable="GPUSHARE_MEMORY_MIB",
    card_memory_variable="GPUSHARE_CARD_MEMORY_MIB",
)

DIALECTS = {dialect.name: dialect for dialect in (GPUSHARE,)}

RESOURCES: Mapping[str, ResourceClass] = {
    name: resource for dialect in DIALECTS.values() for name, resource in dialect.resources.items()
}
"""Every extended resource of every dialect -> the class that it stands for."""
