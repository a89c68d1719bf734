"""An address that takes no connections and does not refuse them either: a host that is switched off."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import pytest

ENOUGH = 3
"""Connections that fill a queue of size 0: Linux accepts one more, and drops the next ones."""


@contextlib.contextmanager
def black_hole() -> Iterator[tuple[str, int]]:
    """Yields host and port."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(ENOUGH):
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            with contextlib.suppress(BlockingIOError):
                filling.connect(listening.getsockname())
        yield listening.getsockname()


@contextlib.contextmanager
def silent_behind_dead(patch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """Gives every name two addresses in this event loop: one that is switched off, and a server that never
    sends a byte. Yields an event that is set when the second address is tried."""
    loop, tried = asyncio.get_running_loop(), asyncio.Event()
    sock_connect = loop.sock_connect
    with socket.create_server(("127.0.0.1", 0)) as silent, black_hole() as dead:

        async def addresses(*_: object, **__: object) -> object:
            return [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)
                for address in (dead, silent.getsockname())
            ]

        async def seen_to_connect(connecting: socket.socket, address: tuple[str, int]) -> None:
            if address != dead:
                tried.set()
            await sock_connect(connecting, address)

        patch.setattr(loop, "getaddrinfo", addresses)
        patch.setattr(loop, "sock_connect", seen_to_connect)
        yield tried
