"""The open list of devices: what the kubelet was sent, and whether it still listens."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

FASTEST = 1
"""Level of compression: 17 ms for the largest list, 123 at the usual level; with either it shrinks to a
seventh. What is left of it repeats itself: compressed once more, in a millisecond, it is a 150th."""


class DeviceStream:
    """Serves ListAndWatch.

    Only the newest stream counts. An older one is left alone until its client goes: when the kubelet sees a
    stream end, it disconnects whatever was registered last. Source: ``server.runClient`` of the kubelet.
    """

    def __init__(self) -> None:
        self._packed: bytes | None = None
        """The list, compressed: of 256,000 units it has 4 MiB, and is hardly ever sent again."""
        self._changed = asyncio.Event()
        self.is_offering = False
        """Whether there is a list for the kubelet, even an empty one."""
        self.opened = 0
        """Grows with every stream: the number of the newest."""
        self.is_open = False
        """Whether the newest stream's client is still there."""

    def offer(self, message: bytes) -> None:
        """Sends ``message`` to the kubelet, unless it has it already."""
        self.is_offering = True
        packed = _packed(message)
        if packed != self._packed:
            self._packed = packed
            self._notify()

    def withdraw(self, message: bytes) -> None:
        """Sends ``message``, an empty list, to whoever listens now, and waits for nobody else."""
        self.offer(message)
        self.is_offering = False

    def offer_later(self, message: bytes) -> None:
        """Sends ``message`` to whoever listens next. What is open now gets nothing any more: the kubelet
        takes a list also from a plugin that another one has displaced, for that of the other."""
        packed = _packed(message)
        if packed != self._packed:
            self._packed, self.is_open = packed, False
            self.opened += 1
            self._notify()

    async def changed(self) -> None:
        """Returns when something is new: a list, a stream, or the end of one."""
        await self._changed.wait()

    async def serve(self) -> AsyncGenerator[bytes, None]:
        """Yields the messages of one stream, until it is cancelled; keeps none of them."""
        self.opened += 1
        number = self.opened
        self.is_open = True
        self._notify()
        try:
            async for packed in self._lists(number):
                yield _unpacked(packed)
        finally:
            if number == self.opened:
                self.is_open = False
                self._notify()

    async def _lists(self, number: int) -> AsyncIterator[bytes]:
        sent: bytes | None = None
        while True:
            changed = self._changed
            if number == self.opened and self._packed is not sent and self._packed is not None:
                sent = self._packed
                yield sent
            else:
                await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _packed(message: bytes) -> bytes:
    return zlib.compress(zlib.compress(message, FASTEST), FASTEST)


def _unpacked(packed: bytes) -> bytes:
    return zlib.decompress(zlib.decompress(packed))
