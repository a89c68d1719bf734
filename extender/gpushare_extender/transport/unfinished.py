"""How much is kept of requests that have not come in full, on all connections of a listener together."""

from dataclasses import dataclass, field
from logging import Logger, LoggerAdapter
from typing import Any, Protocol

MAX_UNFINISHED = 2**26
"""Bytes; more where a single request may be larger. Who sends requests in one go hardly needs any."""


class Holder(Protocol):
    """A connection."""

    def make_room(self, number: int) -> None:
        """Gives up what it holds under this number."""


@dataclass(slots=True)
class PartialRequestBudget:
    """At most ``most`` bytes; one more and the oldest makes room, as among connections that have shown
    nothing: who sends a request in one go is heard, however many others are kept half-sent."""

    most: int
    log: "Logger | LoggerAdapter[Any]"
    _held: dict[tuple[Holder, int], int] = field(default_factory=dict, init=False)
    """Oldest first."""
    _total: int = field(default=0, init=False)

    @classmethod
    def for_requests(cls, largest: int, log: "Logger | LoggerAdapter[Any]") -> "PartialRequestBudget":
        """``largest``: bytes of a request, of which two have room."""
        return cls(max(MAX_UNFINISHED, 2 * largest), log)

    @property
    def total(self) -> int:
        """Bytes that are held."""
        return self._total

    def hold(self, holder: Holder, number: int, size: int) -> None:
        """``size``: bytes held under this number from now on."""
        key = holder, number
        self._total += size - self._held.get(key, 0)
        self._held[key] = size
        while self._total > self.most:
            self.log.warning("more than %d bytes of unfinished requests: the oldest is given up", self.most)
            self._give_up(next(iter(self._held)))

    def release(self, holder: Holder, number: int) -> None:
        """Nothing is held under this number any more."""
        self._total -= self._held.pop((holder, number), 0)

    def _give_up(self, key: tuple[Holder, int]) -> None:
        holder, number = key
        self.release(holder, number)
        holder.make_room(number)
