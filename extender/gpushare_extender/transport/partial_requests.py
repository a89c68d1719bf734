"""The bytes kept of requests that have not come in full, on all connections of a listener together."""

from dataclasses import dataclass, field
from logging import Logger, LoggerAdapter
from typing import Any, Protocol

MAX_PARTIAL_BYTES = 2**26
"""More where a single request may be larger. A client that sends its request in one go hardly needs any."""


class PartialRequestOwner(Protocol):
    """A connection."""

    def evict(self, number: int) -> None:
        """Gives up the partial request with this number."""


@dataclass(slots=True)
class PartialRequestBudget:
    """At most ``limit`` bytes: when they are exceeded, the oldest partial requests are evicted. So a client
    that sends its request in one go is served, however many others leave theirs half-sent."""

    limit: int
    log: "Logger | LoggerAdapter[Any]"
    _reserved: dict[tuple[PartialRequestOwner, int], int] = field(default_factory=dict, init=False)
    """Owner and number -> bytes. Oldest first."""
    _total: int = field(default=0, init=False)

    @classmethod
    def for_requests(cls, max_request: int, log: "Logger | LoggerAdapter[Any]") -> "PartialRequestBudget":
        """Has room for two requests of ``max_request`` bytes."""
        return cls(max(MAX_PARTIAL_BYTES, 2 * max_request), log)

    @property
    def total(self) -> int:
        """Bytes reserved now."""
        return self._total

    def reserve(self, owner: PartialRequestOwner, number: int, size: int) -> None:
        """Sets the bytes reserved for the owner's request ``number`` to ``size``."""
        key = owner, number
        self._total += size - self._reserved.get(key, 0)
        self._reserved[key] = size
        while self._total > self.limit:
            self.log.warning("more than %d bytes of partial requests: dropping the oldest", self.limit)
            oldest, its_number = next(iter(self._reserved))
            self.release(oldest, its_number)
            oldest.evict(its_number)

    def release(self, owner: PartialRequestOwner, number: int) -> None:
        self._total -= self._reserved.pop((owner, number), 0)
