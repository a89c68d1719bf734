"""A port of the extender's for the time of a block."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from gpushare_extender.transport.listener import open_port


@asynccontextmanager
async def listening(application: web.Application, **options: Any) -> AsyncIterator[int]:
    """As ``open_port``, and yields the port; closes and drains it at the end."""
    opened = await open_port(application, **options)
    try:
        yield opened.number
    finally:
        await opened.close()
        await opened.drain()
