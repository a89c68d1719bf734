"""An address that takes no connections and does not refuse them either: a host that is switched off."""

import contextlib
import socket
from collections.abc import Iterator

ENOUGH = 3
"""Connections that fill a queue for none: Linux takes one more, and drops what comes then."""


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
