"""From bytes of a card to units of the extended resource."""

from dataclasses import dataclass

from gpushare_core.placement.quantity import parse_memory


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """The size of one unit, as the administrator wrote it."""

    text: str
    size: int
    """Bytes."""

    @classmethod
    def parse(cls, text: str) -> "MemoryUnit":
        """Raises ``ValueError`` when ``text`` is no quantity or not positive."""
        size = parse_memory(text)
        if size <= 0:
            raise ValueError(f"a memory unit must be more than nothing, not {text!r}")
        return cls(text=text, size=size)

    def units_in(self, memory: int, *, reserved: int = 0) -> int:
        """Returns the whole units in a card of ``memory`` bytes of which ``reserved`` stay out of sharing."""
        return max(0, memory - reserved) // self.size
