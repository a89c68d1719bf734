"""Liveness, readiness and metrics over HTTP: GET /healthz, /readyz and /metrics.

Written by hand, because an HTTP framework would cost this process 2 MB of its 64.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType

from gpushare_core.metrics import CONTENT_TYPE
from gpushare_core.printable import printable

Probe = Callable[[], str]
"""Returns what is wrong, or an empty text."""
Page = Callable[[], bytes]
"""Returns what Prometheus reads."""

READ_TIMEOUT = 5.0
"""Seconds in which a request has to arrive."""
NO_PAGES: Mapping[str, Page] = MappingProxyType({})
LONGEST_HEAD = 8192
"""Bytes of a request that are read at most."""


class HealthServer:
    """Use as an asynchronous context manager.

    Listens on all addresses unless ``host`` is given: the kubelet asks on the pod's.
    """

    def __init__(
        self,
        port: int,
        probes: Mapping[str, Probe],
        *,
        pages: Mapping[str, Page] = NO_PAGES,
        host: str | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._probes = probes
        self._pages = pages

    async def __aenter__(self) -> "HealthServer":
        self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=LONGEST_HEAD)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """The port in use. Where 0 was asked for give ``host``, else each address family has its own."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            return
        finally:
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        path = words[1].split("?")[0] if words[0] == "GET" and len(words) > 1 else ""
        if page := self._pages.get(path):
            return _response(HTTPStatus.OK, page(), CONTENT_TYPE)
        probe = self._probes.get(path)
        if probe is None:
            known = " or ".join([*self._probes, *self._pages])
            return _response(HTTPStatus.NOT_FOUND, f"ask for {known}".encode())
        problem = probe()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return _response(status, printable(problem or "ok").encode())


def _response(status: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
