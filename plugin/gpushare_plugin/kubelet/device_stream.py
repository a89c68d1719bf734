"""The open list of devices: what the kubelet was sent, and whether it still listens."""

import asyncio
from collections.abc import AsyncIterator


class DeviceStream:
    """Serves ListAndWatch.

    Only the newest stream counts. An older one is left alone until its client goes: when the kubelet sees a
    stream end, it disconnects whatever was registered last. Source: ``server.runClient`` of the kubelet.
    """

    def __init__(self) -> None:
        self._message: bytes | None = None
        self._wanted = False
        self._changed = asyncio.Event()
        self._newest = 0
        self._open = False

    @property
    def is_offering(self) -> bool:
        """Whether there is a list for the kubelet, even an empty one."""
        return self._wanted

    @property
    def opened(self) -> int:
        """Grows with every stream."""
        return self._newest

    @property
    def is_open(self) -> bool:
        """Whether the newest stream's client is still there."""
        return self._open

    def offer(self, message: bytes) -> None:
        """Sends ``message`` to the kubelet, unless it has it already."""
        self._wanted = True
        if message != self._message:
            self._message = message
            self._notify()

    def withdraw(self, message: bytes) -> None:
        """Sends ``message``, an empty list, to who listens now; nobody is looked for who would."""
        self.offer(message)
        self._wanted = False

    def offer_later(self, message: bytes) -> None:
        """Sends ``message`` to whoever listens next. What is open now gets nothing any more: the kubelet
        takes a list also from a plugin that another one has displaced, for that of the other."""
        if message != self._message:
            self._message, self._open = message, False
            self._newest += 1
            self._notify()

    async def changed(self) -> None:
        """Returns when something is new: a list, a stream, or the end of one."""
        await self._changed.wait()

    async def serve(self) -> AsyncIterator[bytes]:
        """Yields the messages of one stream, until it is cancelled."""
        self._newest += 1
        number = self._newest
        self._open = True
        self._notify()
        try:
            async for message in self._messages(number):
                yield message
        finally:
            if number == self._newest:
                self._open = False
                self._notify()

    async def _messages(self, number: int) -> AsyncIterator[bytes]:
        sent: bytes | None = None
        while True:
            changed = self._changed
            if number == self._newest and self._message is not sent and self._message is not None:
                sent = self._message
                yield sent
            else:
                await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
