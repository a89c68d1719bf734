"""Mode Mixed: a free card is open to every class, and its first use locks it to one until it is empty."""

from gpushare_core.placement.modes.exclusive import ExclusiveMode
from gpushare_core.placement.modes.memory import MemoryMode
from gpushare_core.placement.modes.sharing_mode import NodeMode, SharingMode
from gpushare_core.placement.modes.slices import SlicesMode
from gpushare_core.placement.units import MixedUnit, UnitFields


class MixedMode(NodeMode):
    """Memory, slices and whole cards beside each other, each card for one of them at a time."""

    name = "Mixed"

    def __init__(self, memory: MemoryMode, slices: SlicesMode, exclusive: ExclusiveMode) -> None:
        self._memory, self._slices, self._exclusive = memory, slices, exclusive

    @property
    def served(self) -> tuple[SharingMode, ...]:
        return (self._memory, self._slices, self._exclusive)

    def unit(self, fields: UnitFields, /) -> MixedUnit:
        return MixedUnit(self._memory.unit(fields), self._slices.unit(fields))
