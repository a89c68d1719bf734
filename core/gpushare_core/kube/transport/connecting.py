"""Connecting that can be cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

CANCEL_AGAIN_SECONDS = 0.1


async def cancellable(connecting: Awaitable[T], *, close: Callable[[T], None]) -> T:
    """Returns the result of ``connecting``; when cancelled, ends it and calls ``close`` with what it opened.

    aiohappyeyeballs, and with it aiohttp, forgets that it was cancelled while it ends the attempts at other
    addresses. It is therefore cancelled again until it ends.
    """
    task = asyncio.ensure_future(connecting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda ended: _close_result(ended, close))
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=CANCEL_AGAIN_SECONDS)
        raise


def _close_result(ended: "asyncio.Task[T]", close: Callable[[T], None]) -> None:
    if not ended.cancelled() and not ended.exception():
        close(ended.result())
