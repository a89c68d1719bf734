"""Where the extender listens; while a port changes, at several addresses."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from aiohttp import web

from gpushare_core.health_server import CannotServeError, HealthServer, Page
from gpushare_core.process.version import VERSION
from gpushare_extender.transport.listener import Http2Service, ListenerLimits, open_port
from gpushare_extender.transport.tls import ServerTls

RETRY_SECONDS = 2.0
"""Between attempts at an address that another program has."""

_log = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class OpenPort(Protocol):
    """Where requests are taken."""

    async def close(self) -> None:
        """Takes no more connections."""

    async def drain(self) -> None:
        """Returns when the requests that have come are answered, or have had their time."""


class AnyEndpoint(Protocol):
    """An address and what is answered there."""

    @property
    def address(self) -> Address: ...

    async def open(self, *, drain: float) -> OpenPort:
        """Begins to answer. ``drain`` is how many seconds requests that have come may take at the end.

        Raises:
            OSError: the address cannot be had.
        """


class Endpoint(NamedTuple):
    """Where kube-scheduler calls."""

    address: Address
    application: web.Application
    tls: ServerTls | None
    limits: ListenerLimits
    http2: Http2Service | None = None

    async def open(self, *, drain: float) -> OpenPort:
        return await open_port(
            self.application,
            host=self.address.host,
            port=self.address.port,
            tls=self.tls,
            drain=drain,
            limits=self.limits,
            http2=self.http2,
        )


class HealthEndpoint(NamedTuple):
    """Where the kubelet and Prometheus ask."""

    address: Address
    pages: Mapping[str, Page]

    async def open(self, *, drain: float) -> OpenPort:
        del drain  # whoever has asked there is answered at once
        port = HealthServer(self.address.port, self.pages, host=self.address.host)
        port.open()
        return _OpenHealthPort(port)


class _OpenHealthPort(NamedTuple):
    port: HealthServer

    async def close(self) -> None:
        await self.port.close()

    async def drain(self) -> None:
        """Nothing is left."""


@contextlib.asynccontextmanager
async def serving(
    calls: Sequence[AnyEndpoint],
    health: Sequence[AnyEndpoint],
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
        is_answered = len(calls) > 1 and any(call.address not in unanswered for call in calls)
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

    async def open(self, endpoints: Iterable[AnyEndpoint]) -> list[AnyEndpoint]:
        """Returns those whose address cannot be had."""
        return [endpoint for endpoint in endpoints if not await self._try(endpoint)]

    async def open_later(self, missing: list[AnyEndpoint]) -> None:
        while missing:
            await asyncio.sleep(RETRY_SECONDS)
            missing = await self.open(missing)

    async def close(self) -> None:
        """All at once, or those that are closed last would go on to take requests, and have their time after
        the others have had it."""
        for each in self._opened:
            await each.close()
        await asyncio.gather(*(each.drain() for each in self._opened))

    async def _try(self, endpoint: AnyEndpoint) -> bool:
        address = endpoint.address
        try:
            self._opened.append(await endpoint.open(drain=self.drain))
        except OSError as error:
            problem = f"cannot listen on {address}: {error.strerror}; is one running?"
            if self.problems.setdefault(str(address), problem) is problem:
                _log.error("%s", problem)
            return False
        self.problems.pop(str(address), None)
        _log.info("version %s listens on %s", VERSION, address)
        return True
