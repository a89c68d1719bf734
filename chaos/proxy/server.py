"""The proxy: passes every request on to the API server, unless a fault hits it."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from chaos.proxy.call import Call, call
from chaos.proxy.fault import ActiveFaults, ApiFault, Manner
from chaos.proxy.framing import framing, status_object
from chaos.proxy.streams import Changes, Stream
from gpushare_core.kube.credentials import Credentials

_OF_ONE_CONNECTION = {"accept-encoding", "host", "connection", "transfer-encoding", "content-length"}
_MAX_BODY = 2**24
_PIECES = 8
"""In which the answer of a slow call comes."""


@dataclass(slots=True)
class ApiProxy:
    """Forwards to ``upstream`` with the client's token, or with the token of ``upstream`` where it
    ``logs_in``."""

    upstream: Credentials
    logs_in: bool = False
    carried_out: Callable[[Call], None] = lambda _: None
    """Called for every write that the API server has carried out."""
    faults: ActiveFaults = field(default_factory=ActiveFaults)
    url: str = ""
    _changes: Changes = field(default_factory=Changes, init=False)
    _session: aiohttp.ClientSession = field(init=False)
    _runner: web.AppRunner = field(init=False)
    _site: web.TCPSite | None = field(default=None, init=False)
    _under_way: set["asyncio.Task[Any]"] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self.faults.changed = self._changes.announce

    @asynccontextmanager
    async def serving(
        self, host: str, port: int, *, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator["ApiProxy"]:
        """Serves until the end of the block; port 0 takes a free one, which ``url`` then names."""
        connector = aiohttp.TCPConnector(ssl=self.upstream.tls(), limit=0)
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
            await self._runner.setup()
            door = asyncio.create_task(self._keep_door(host, port, tls))
            await self._changes.until(lambda: self.url != "" or door.done())
            try:
                yield self
            finally:
                door.cancel()
                await asyncio.wait([door])
                await self._runner.cleanup()

    async def _keep_door(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        """Listens as long as no fault says that nobody does."""
        while True:
            await self._changes.until(lambda: not self._is_refused())
            self._site = web.TCPSite(self._runner, host, port, ssl_context=tls, reuse_address=True)
            await self._site.start()
            _, port = self._runner.addresses[0][:2]
            self.url = f"{'https' if tls else 'http'}://{host}:{port}"
            self._changes.announce()
            await self._changes.until(self._is_refused)
            await self._site.stop()
            self._reset_all()

    def _is_refused(self) -> bool:
        return any(fault.manner is Manner.REFUSED for fault in self.faults)

    def _reset_all(self) -> None:
        server = self._runner.server
        for connection in server.connections if server else ():
            reset(connection.transport)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        asked = call(
            request.method,
            request.path,
            query=request.query,
            authorization=request.headers.get("Authorization", ""),
        )
        fault = self.faults.of(asked)
        body = await request.read()
        if fault is not None and (instead := await self._instead(fault, request)) is not None:
            return instead
        if asked.verb == "watch":
            return await self._watch(request, asked, fault)
        return await self._answer(request, asked, fault, body)

    async def _instead(self, fault: ApiFault, request: web.Request) -> web.StreamResponse | None:
        """Returns the response to a request that does not reach the API server; None where it does."""
        match fault.manner:
            case Manner.STATUS:
                return refusal(fault)
            case Manner.RESET | Manner.REFUSED:
                return given_up(request)
            case Manner.SILENT:
                await self._changes.until(lambda: fault not in self.faults)
                return given_up(request)
            case Manner.HUNG:
                await asyncio.Event().wait()
        return None

    async def _answer(
        self, request: web.Request, asked: Call, fault: ApiFault | None, body: bytes
    ) -> web.StreamResponse:
        delay = fault.seconds if fault and fault.manner is Manner.SLOW else 0.0
        forwarding = self._forward(request, asked, body, delay=delay)
        answer = await (self._whatever_the_caller_does(forwarding) if asked.is_write else forwarding)
        if answer is None:
            return given_up(request)
        status, headers, content = answer
        if fault is None:
            return web.Response(status=status, headers=headers, body=content)
        if fault.manner is Manner.LOST_ANSWER:
            return given_up(request)
        if fault.manner is Manner.TRUNCATED:
            return web.Response(status=status, headers=headers, body=content[: len(content) // 2])
        return await self._slowly(request, web.StreamResponse(status=status, headers=headers), content, fault)

    async def _slowly(
        self, request: web.Request, response: web.StreamResponse, content: bytes, fault: ApiFault
    ) -> web.StreamResponse:
        await response.prepare(request)
        size = max(1, len(content) // _PIECES)
        for start in range(0, len(content), size):
            await asyncio.sleep(fault.seconds / _PIECES)
            await response.write(content[start : start + size])
        return response

    async def _forward(
        self, request: web.Request, asked: Call, body: bytes, *, delay: float
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Returns status, headers and content of the response; None when there was none."""
        await asyncio.sleep(delay)
        try:
            async with self._open(request, body) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, OSError):
            return None
        if asked.is_write and answer.status < web.HTTPMultipleChoices.status_code:
            self.carried_out(asked)
        return answer.status, kept(answer.headers), content

    async def _watch(self, request: web.Request, asked: Call, fault: ApiFault | None) -> web.StreamResponse:
        try:
            async with self._open(request, b"") as answer:
                response = web.StreamResponse(status=answer.status, headers=kept(answer.headers))
                await response.prepare(request)
                stream = Stream(
                    call=asked,
                    faults=self.faults,
                    changes=self._changes,
                    fault=fault,
                    framing=framing(answer.content_type),
                )
                if not await stream.relay(answer.content, response.write):
                    reset(request.transport)
                return response
        except (aiohttp.ClientError, OSError):
            return given_up(request)

    def _open(self, request: web.Request, body: bytes) -> Any:
        # Of what is compressed it cannot be told where an event ends.
        headers = {**kept(request.headers), "Accept-Encoding": "identity"}
        if self.logs_in:
            headers.pop("Authorization", None)
            if token := self.upstream.token():
                headers["Authorization"] = f"Bearer {token}"
        return self._session.request(
            request.method,
            self.upstream.server + request.raw_path,
            headers=headers,
            data=body or None,
            server_hostname=self.upstream.server_name,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    async def _whatever_the_caller_does(self, work: Coroutine[Any, Any, Any]) -> Any:
        """A packet that was sent arrives, though its sender has gone."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)


def kept(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_ONE_CONNECTION}


def refusal(fault: ApiFault) -> web.Response:
    """As the API server writes a ``metav1.Status``."""
    after = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    return web.json_response(status_object(fault.status), status=fault.status, headers=after)


def given_up(request: web.Request) -> web.StreamResponse:
    """Resets the client's connection; returns a response that the client does not get."""
    reset(request.transport)
    return web.Response()


def reset(transport: asyncio.BaseTransport | None) -> None:
    if transport is None:
        return
    if (connection := transport.get_extra_info("socket")) is not None:
        # RST instead of FIN: nothing that was written before may look like an answer.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()
