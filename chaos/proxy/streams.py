"""A watch on its way through the proxy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp

from chaos.proxy.call import Call
from chaos.proxy.fault import ActiveFaults, ApiFault, Manner
from chaos.proxy.framing import Framing


@dataclass(slots=True)
class Changes:
    """Wakes who waits for a change of the faults."""

    _next: asyncio.Event = field(default_factory=asyncio.Event)

    def announce(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._next.wait()

    async def once(self) -> None:
        await self._next.wait()


Write = Callable[[bytes], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Stream:
    """An open watch and the fault that hits it, if any."""

    call: Call
    faults: ActiveFaults
    changes: Changes
    fault: ApiFault | None
    framing: Framing

    def follow_faults(self) -> None:
        """They have changed."""
        if not self.is_hit():
            self.fault = self.faults.of_stream(self.call)

    def is_hit(self) -> bool:
        return self.fault is not None and self.fault in self.faults

    async def relay(self, content: aiohttp.StreamReader, write: Write) -> bool:
        """Passes events on until the watch ends. Returns False where the client's connection is to be
        reset."""
        async for events in self._wakened(content):
            if not self.is_hit():
                self.fault = None
            if (ended := await self._end(write)) is not None:
                return ended
            if events is None:
                return False
            await self._pass_on(events, write)
        return True

    async def _wakened(self, content: aiohttp.StreamReader) -> AsyncIterator[bytes | None]:
        """Yields every whole event; empty bytes at the start and when faults have changed; None when the API
        server has broken off."""
        yield b""
        incoming = aiter(self._whole_events(content))
        reading = asyncio.ensure_future(anext(incoming, None))
        changing = asyncio.ensure_future(self.changes.once())
        try:
            while True:
                await asyncio.wait([reading, changing], return_when=asyncio.FIRST_COMPLETED)
                if changing.done():
                    changing = asyncio.ensure_future(self.changes.once())
                    self.follow_faults()
                    yield b""
                if reading.done():
                    if reading.exception() is not None:
                        yield None
                    if (events := reading.result()) is None:
                        return
                    yield events
                    reading = asyncio.ensure_future(anext(incoming, None))
        finally:
            reading.cancel()
            changing.cancel()

    async def _whole_events(self, content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
        """Yields one or more events at a time, and at last what is no whole event."""
        unfinished = b""
        async for chunk in content.iter_any():
            whole, unfinished = self.framing.split(unfinished + chunk)
            if whole:
                yield b"".join(whole)
        if unfinished:
            yield unfinished

    async def _end(self, write: Write) -> bool | None:
        """Returns whether the watch ends in good order (True) or broken (False); None when it goes on."""
        match self.fault and self.fault.manner:
            case Manner.CLOSED:
                return True
            case Manner.EXPIRED:
                await write(self.framing.error_event(self.fault.status if self.fault else 0))
                return True
            case Manner.TRUNCATED:
                await write(self.framing.half_an_event)
                return True
            case Manner.SILENT:
                await self.changes.until(lambda: not self.is_hit())
                return False
            case Manner.HUNG:
                await asyncio.Event().wait()
            case Manner.REFUSED:
                return False
        return None

    async def _pass_on(self, events: bytes, write: Write) -> None:
        if not events:
            return
        if self.fault is None:
            await write(events)
            return
        whole, rest = self.framing.split(events)
        for event in [*whole, rest]:
            if self.fault.manner in (Manner.LATE, Manner.SLOW):
                await self._delay(self.fault.seconds)
            await write(event * (2 if self.fault.manner is Manner.TWICE else 1))

    async def _delay(self, seconds: float) -> None:
        """Ends with the fault: what is late then comes all at once."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.changes.until(lambda: not self.is_hit()), seconds)
