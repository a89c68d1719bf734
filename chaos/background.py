"""Work beside a history, such as watching, whose end must not go unnoticed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from chaos.findings import Finding


@asynccontextmanager
async def background(
    work: Coroutine[Any, Any, object], *, name: str, report: Callable[[Finding], None]
) -> AsyncIterator[None]:
    """Does ``work`` while it is entered. If ``work`` ends by itself, that is a finding at once."""
    task = asyncio.create_task(_reported(work, name, report))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _reported(work: Coroutine[Any, Any, object], name: str, report: Callable[[Finding], None]) -> None:
    try:
        await work
        why = "without an error"
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    report(Finding(rule="run", sentence=f"{name} has ended, and looks no more: {why}"))
