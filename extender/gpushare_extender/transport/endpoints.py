"""The addresses that the extender listens on; while its port is being changed, several."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from gpushare_core.health_server import CannotServeError, HealthServer, Page
from gpushare_core.process.version import VERSION
from gpushare_extender.transport.http2 import Http2Service
from gpushare_extender.transport.listener import ListenerLimits, ListeningPort, open_port
from gpushare_extender.transport.tls import ServerTls

RETRY_SECONDS = 2.0
"""Between attempts to listen on an address that another program has."""

_log = logging.getLogger(__name__)


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """An application at an address, such as the one that kube-scheduler calls."""

    address: Address
    application: web.Application
    tls: ServerTls | None
    limits: ListenerLimits
    http2: Http2Service | None = None

    async def open(self, *, drain: float) -> ListeningPort:
        """Begins to serve. ``drain``: seconds for the responses to requests that have come by the end.

        Raises:
            OSError: the address is not available.
        """
        return await open_port(
            self.application,
            host=self.address.host,
            port=self.address.port,
            tls=self.tls,
            drain=drain,
            limits=self.limits,
            http2=self.http2,
        )


class HealthPortEndpoint(NamedTuple):
    """Health pages at an address, for the kubelet and Prometheus."""

    address: Address
    pages: Mapping[str, Page]

    async def open(self, *, drain: float) -> HealthServer:
        """As ``Endpoint.open``."""
        del drain  # responses do not wait for anything
        port = HealthServer(self.address.port, self.pages, host=self.address.host)
        port.open()
        return port


AnyEndpoint = Endpoint | HealthPortEndpoint
OpenPort = ListeningPort | HealthServer


@contextlib.asynccontextmanager
async def serving(
    calls: Sequence[AnyEndpoint],
    health: Sequence[AnyEndpoint],
    problems: MutableMapping[str, str],
    *,
    drain: float,
) -> AsyncIterator[None]:
    """Serves requests; at the end takes no more, and responds to those that have come in ``drain`` seconds.

    While the port is being changed there are several addresses for ``calls``: those that another program has
    are tried again, as long as one is available. ``problems``: address -> why it is not available.

    Raises:
        CannotServeError: an address is not available; where there are several for calls, none is.
    """
    listeners = _Listeners(problems, drain)
    try:
        missing = await listeners.open([*calls, *health])
        unavailable = {endpoint.address for endpoint in missing}
        may_wait = len(calls) > 1 and any(call.address not in unavailable for call in calls)
        if missing and not may_wait:
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
        """Returns those whose address is not available."""
        return [endpoint for endpoint in endpoints if not await self._try(endpoint)]

    async def open_later(self, missing: list[AnyEndpoint]) -> None:
        while missing:
            await asyncio.sleep(RETRY_SECONDS)
            missing = await self.open(missing)

    async def close(self) -> None:
        """Closes all ports before any is drained: one that is closed later would take requests meanwhile."""
        for port in self._opened:
            await port.close()
        await asyncio.gather(*(port.drain() for port in self._opened))

    async def _try(self, endpoint: AnyEndpoint) -> bool:
        address = endpoint.address
        try:
            self._opened.append(await endpoint.open(drain=self.drain))
        except OSError as error:
            problem = f"cannot listen on {address}: {error.strerror}; is another extender running?"
            if self.problems.setdefault(str(address), problem) is problem:
                _log.error("%s", problem)
            return False
        self.problems.pop(str(address), None)
        _log.info("version %s listens on %s", VERSION, address)
        return True
