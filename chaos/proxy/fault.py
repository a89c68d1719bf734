"""Which calls are broken, and how."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus

import msgspec

from chaos.proxy.call import Call


class Manner(StrEnum):
    """What happens to a request; also whether the API server carries it out nevertheless."""

    REFUSED = "refused"
    """Nothing listens, and all connections are reset, whatever the request."""
    RESET = "reset"
    """The connection is reset when the call has come in."""
    SILENT = "silent"
    """No response; an open watch carries no events. All connections are reset when the fault ends."""
    HUNG = "hung"
    """As SILENT, without end: the client has to give the connection up by itself."""
    SLOW = "slow"
    """Carried out ``seconds`` late, even if the client has given up, with a slow response."""
    STATUS = "status"
    """Answered with ``status``, not carried out. An open watch goes on."""
    CLOSED = "closed"
    """Watches end at once, in good order."""
    EXPIRED = "expired"
    """Watches carry an ERROR event with code ``status``, then end."""
    TRUNCATED = "truncated"
    """Carried out; the response ends half-way in good order, and a watch within an event."""
    LOST_ANSWER = "lost-answer"
    """Writes are carried out and the connection reset instead of the answer."""
    TWICE = "twice"
    """Every event of a watch comes twice."""
    LATE = "late"
    """Every event of a watch comes ``seconds`` late, in order."""


ONLY_WATCHES = frozenset({Manner.CLOSED, Manner.EXPIRED, Manner.TWICE, Manner.LATE})
ONLY_TAMPER = frozenset({Manner.SLOW, Manner.TWICE, Manner.LATE})
"""What leaves a watch open."""
ONLY_CALLS = frozenset({Manner.STATUS, Manner.LOST_ANSWER, Manner.RESET})
"""What never touches a watch once it is open."""


RECONNECT_SECONDS = 35.0
"""The longest backoff of our programs, a list without response before the next watch, and some more."""


class ApiFault(msgspec.Struct, frozen=True, kw_only=True):
    """Empty lists and texts stand for everything.

    ``path`` is a regular expression searched for in a call's path; every ``every``-th of the calls that match
    is hit, the first one included.
    """

    manner: Manner
    programs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    path: str = ""
    every: int = 1
    seconds: float = 0.0
    status: int = HTTPStatus.INTERNAL_SERVER_ERROR
    retry_after: int = 0
    """Seconds, in the header of an answer with ``status``; 0 for none."""

    def matches(self, call: Call) -> bool:
        return (
            _names(self.programs, call.program)
            and _names(self.nodes, call.node)
            and _names(self.verbs, call.verb)
            and (call.verb == "watch" or self.manner not in ONLY_WATCHES)
            and (call.is_write or self.manner is not Manner.LOST_ANSWER)
            and re.search(self.path, call.path) is not None
        )


def _names(meant: tuple[str, ...], name: str) -> bool:
    return not meant or name in meant


@dataclass(slots=True)
class _Active:
    fault: ApiFault
    matched: int = 0
    hits: int = 0

    def hit(self, call: Call) -> bool:
        if not self.fault.matches(call):
            return False
        self.matched += 1
        is_hit = (self.matched - 1) % self.fault.every == 0
        self.hits += is_hit
        return is_hit


@dataclass(slots=True)
class ActiveFaults:
    """The active faults. Of several that match a request, the first one hits it."""

    changed: Callable[[], None] = lambda: None
    """Called after every change."""
    clock: Callable[[], float] = time.monotonic
    _by_id: dict[int, _Active] = field(default_factory=dict)
    _broken: dict[Call, float] = field(default_factory=dict)
    """Watches that were hit and have not been opened since -> when that was."""

    def begin(self, number: int, fault: ApiFault) -> None:
        self._by_id[number] = _Active(fault)
        self.changed()

    def end(self, number: int) -> int:
        """Returns how many requests and open watches the fault has hit; 0 where it is not active."""
        ended = self._by_id.pop(number, None)
        self.changed()
        return ended.hits if ended else 0

    def hits(self, number: int) -> int:
        """Returns how many calls and open watches were hit until now."""
        return self._by_id[number].hits if number in self._by_id else 0

    def of(self, call: Call) -> ApiFault | None:
        """Returns the fault that hits this call, and counts it."""
        found = next((active.fault for active in self._by_id.values() if active.hit(call)), None)
        return self._noted(call, found)

    def of_stream(self, call: Call) -> ApiFault | None:
        """Returns the fault that hits an open watch, and counts it."""
        meant = (active for active in self._by_id.values() if active.fault.manner not in ONLY_CALLS)
        return self._noted(call, next((active.fault for active in meant if active.hit(call)), None))

    def broken_watches(self) -> list[Call]:
        """Returns the watches that a fault has broken and that are not open again. A client that has not
        tried for ``RECONNECT_SECONDS`` is gone, and left out."""
        earliest = self.clock() - RECONNECT_SECONDS
        return [call for call, at in self._broken.items() if at >= earliest]

    def _noted(self, call: Call, fault: ApiFault | None) -> ApiFault | None:
        if call.verb == "watch":
            self._broken.pop(call, None)
            if fault is not None and fault.manner not in ONLY_TAMPER:
                self._broken[call] = self.clock()
        return fault

    def __iter__(self) -> Iterator[ApiFault]:
        return (active.fault for active in self._by_id.values())
