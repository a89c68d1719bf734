"""Where the extender listens; while a port changes, at several addresses."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from gpushare_core.version import VERSION
from gpushare_extender.http.listener import Http2Service, ListenerLimits, OpenPort, open_port
from gpushare_extender.http.tls import ServerTls

RETRY_SECONDS = 2.0
"""Between attempts at an address that another program has."""

_log = logging.getLogger(__name__)


class CannotServeError(Exception):
    """The program cannot do its work from the start; the text says why and what to do."""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """An address and what is answered there."""

    address: Address
    application: web.Application
    tls: ServerTls | None
    limits: ListenerLimits
    http2: Http2Service | None = None


@contextlib.asynccontextmanager
async def serving(
    calls: Sequence[Endpoint],
    health: Sequence[Endpoint],
    problems: MutableMapping[str, str],
    *,
    drain: float,
) -> AsyncIterator[None]:
    """Answers requests; at the end takes no more and answers those that have come, in ``drain`` seconds.

    While a port changes, that is with several addresses for ``calls``, those that another program has are
    tried again as long as kube-scheduler is answered on any. ``problems``: address -> why it cannot be had.

    Raises:
        CannotServeError: an address cannot be had; of several for calls, none.
    """
    listeners = _Listeners(problems, drain)
    try:
        missing = await listeners.open([*calls, *health])
        unanswered = {each.address for each in missing}
        is_answered = len(calls) > 1 and any(each.address not in unanswered for each in calls)
        if missing and not is_answered:
            raise CannotServeError(problems[str(missing[0].address)])
        trying = asyncio.create_task(listeners.open_later(missing))
        try:
            yield
        finally:
            trying.cancel()
            await asyncio.wait({trying})
    finally:
        await listeners.close()


@dataclass(frozen=True, slots=True)
class _Listeners:
    problems: MutableMapping[str, str]
    drain: float
    _opened: list[OpenPort] = field(default_factory=list)

    async def open(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Returns those whose address cannot be had."""
        return [each for each in endpoints if not await self._try(each)]

    async def open_later(self, missing: list[Endpoint]) -> None:
        while missing:
            await asyncio.sleep(RETRY_SECONDS)
            missing = await self.open(missing)

    async def close(self) -> None:
        """All at once, or those that are closed last would go on to take requests, and have their time after
        the others have had it."""
        for each in self._opened:
            await each.close()
        await asyncio.gather(*(each.drain() for each in self._opened))

    async def _try(self, endpoint: Endpoint) -> bool:
        address = endpoint.address
        try:
            self._opened.append(await self._open(endpoint))
        except OSError as error:
            problem = f"cannot listen on {address}: {error.strerror}; is one running?"
            if self.problems.setdefault(str(address), problem) is problem:
                _log.error("%s", problem)
            return False
        self.problems.pop(str(address), None)
        _log.info("version %s listens on %s", VERSION, address)
        return True

    async def _open(self, endpoint: Endpoint) -> OpenPort:
        return await open_port(
            endpoint.application,
            host=endpoint.address.host,
            port=endpoint.address.port,
            tls=endpoint.tls,
            drain=self.drain,
            limits=endpoint.limits,
            http2=endpoint.http2,
        )
