"""The server: a snapshot, a stream of changes, ``why``, and the files of the page."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_cli.web.gathering import Publication
from gpushare_cli.web.page_files import PageFile, page_files
from gpushare_cli.web.request_guard import ADDRESS, SECURITY_HEADERS, RequestGuard
from gpushare_cli.web.why_lines import why_answer
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.process.malloc import give_back

TOKEN_BYTES = 24
MAX_CLIENTS = 100
"""Pages that are open at a time."""
MAX_WHY = 8
"""Questions at a time; ``WHY_AT_ONCE`` of them is asked, the others wait."""
WHY_AT_ONCE = 1
BETWEEN_CHANGES = 1.0
"""Seconds between two messages to a page, at least."""
QUIET_SECONDS = 15.0
"""After so long without a change a page is sent a comment: whoever has gone is noticed then."""
SLOW_SECONDS = 20.0
"""In which a page has to take a message; then it is dropped, and asks anew when it can."""
SILENT_SECONDS = 15.0
"""In which a connection asks for something; then it is ended: anybody on this machine can open them."""
JSON_TYPE = "application/json"


@dataclass(slots=True, kw_only=True)
class PageServer:
    client: KubeClient
    publication: Publication
    guard: RequestGuard
    now: Callable[[], datetime]
    files: Mapping[str, PageFile] = field(default_factory=page_files)
    between: float = BETWEEN_CHANGES
    quiet: float = QUIET_SECONDS
    slow: float = SLOW_SECONDS
    _clients: int = 0
    _asking: int = 0
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WHY_AT_ONCE))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        refused = self.guard.refusal(request.method, request.path, request.headers)
        if refused:
            return _text(refused.status, refused.text)
        name = request.path.partition(f"/{self.guard.token}")[2]
        if not name:
            return _text(HTTPStatus.NOT_FOUND, "the address ends with /")
        answer = self._answers.get(name[1:])
        if answer:
            return await answer(request)
        return self._file(name[1:])

    @property
    def _answers(self) -> Mapping[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]]:
        return {"snapshot": self._snapshot, "events": self._events, "why": self._why}

    def _file(self, name: str) -> web.Response:
        file = self.files.get(name)
        if file is None:
            return _text(HTTPStatus.NOT_FOUND, "there is no such page")
        return _response(HTTPStatus.OK, file.content, file.type)

    async def _snapshot(self, request: web.BaseRequest) -> web.StreamResponse:
        """Compressed, and a piece at a time: a hundred pages of a large cluster would take gigabytes."""
        response = web.StreamResponse(headers={**SECURITY_HEADERS, "Content-Type": JSON_TYPE})
        response.enable_compression()
        await response.prepare(request)
        with suppress(ConnectionError, TimeoutError):
            for piece in self.publication.state.snapshot():
                async with asyncio.timeout(self.slow):
                    await response.write(piece)
            async with asyncio.timeout(self.slow):
                await response.write_eof()
            return response
        return _dropped(request, response)

    async def _events(self, request: web.BaseRequest) -> web.StreamResponse:
        """Sends what changed since the version that the page has. What changes while it reads is one message:
        nothing queues up for a slow page."""
        if self._clients >= MAX_CLIENTS:
            text = f"{MAX_CLIENTS} pages are open: close one of them"
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, text)
        self._clients += 1
        try:
            with self.publication:
                return await self._stream(request)
        finally:
            self._clients -= 1

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={**SECURITY_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        version = _version(request.headers.get("Last-Event-ID") or request.query.get("since", ""))
        with suppress(ConnectionError, TimeoutError):
            while True:
                message, version = await self._next(version)
                async with asyncio.timeout(self.slow):
                    await response.write(message)
                await asyncio.sleep(self.between)
        return _dropped(request, response)

    async def _next(self, version: int) -> tuple[bytes, int]:
        state = self.publication.state
        if state.changes_since(version) is not None:
            try:
                async with asyncio.timeout(self.quiet):
                    await self.publication.changed(version)
            except TimeoutError:
                return b": nothing new\n\n", version
        changes = state.changes_since(version)
        if changes is None:
            return b"event: reset\ndata: a snapshot is needed\n\n", state.version
        return b"id: %d\ndata: %s\n\n" % (state.version, changes), state.version

    async def _why(self, request: web.BaseRequest) -> web.Response:
        namespace, pod = request.query.get("namespace", ""), request.query.get("pod", "")
        if not namespace or not pod:
            return _text(HTTPStatus.BAD_REQUEST, "namespace and pod say which pod is meant")
        if self._asking >= MAX_WHY:
            return _text(HTTPStatus.TOO_MANY_REQUESTS, "too many questions at a time: ask again in a moment")
        self._asking += 1
        try:
            async with self._slots:
                answer = await why_answer(
                    self.client, namespace, pod, now=self.now(), share_nodes=self.publication.share_nodes
                )
        except (CannotLookError, NoCredentialsError, ApiError) as error:
            return _text(HTTPStatus.BAD_GATEWAY, str(error))
        except UnreachableError as error:
            return _text(HTTPStatus.BAD_GATEWAY, not_reached(error))
        finally:
            self._asking -= 1
            give_back()
        return _response(HTTPStatus.OK, msgspec.json.encode(answer), JSON_TYPE)


def _dropped(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    if request.transport:
        request.transport.abort()
    return response


def _version(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def _response(status: HTTPStatus, content: bytes, type_: str) -> web.Response:
    return web.Response(status=status, body=content, headers={**SECURITY_HEADERS, "Content-Type": type_})


def _text(status: HTTPStatus, text: str) -> web.Response:
    allow = {"Allow": "GET"} if status is HTTPStatus.METHOD_NOT_ALLOWED else {}
    headers = {**SECURITY_HEADERS, **allow, "Content-Type": "text/plain; charset=utf-8"}
    return web.Response(status=status, body=f"{text}\n".encode(), headers=headers)


class PageConnection(web.RequestHandler):
    """Answers what is no HTTP, and mistakes of ours, with the headers of every response. Of the first it says
    nothing in the terminal: anybody on this machine can send it, and the token may be in it."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if isinstance(exc, HttpProcessingError):
            response = _text(HTTPStatus.BAD_REQUEST, "this is no request that a browser sends")
            response.force_close()
            return response
        mistake = super().handle_error(request, status, exc, message)
        mistake.headers.update(SECURITY_HEADERS)
        return mistake


class PageConnections(web.Server):
    def __call__(self) -> PageConnection:
        return PageConnection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # which has the token in it; web.Server takes it as well
            keepalive_timeout=SILENT_SECONDS,
            auto_decompress=False,  # nobody reads a body, and to unpack one may fail
        )


@asynccontextmanager
async def serving(
    client: KubeClient, publication: Publication, *, port: int, now: Callable[[], datetime]
) -> AsyncIterator[PageServer]:
    """Serves on 127.0.0.1 until the block ends. ``port``: 0 for any that is free.

    Raises:
        CannotLookError: the port is taken.
    """
    guard = RequestGuard(secrets.token_urlsafe(TOKEN_BYTES), port)
    page = PageServer(client=client, publication=publication, guard=guard, now=now)
    connections = PageConnections(page.handle, handler_cancellation=True)
    runner = web.ServerRunner(connections, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, ADDRESS, port)
        try:
            await site.start()
        except OSError as error:
            raise CannotLookError(
                f"port {port} of {ADDRESS} cannot be had: {error.strerror}; take another with --port"
            ) from error
        page.guard = RequestGuard(guard.token, runner.addresses[0][1])
        yield page
    finally:
        await runner.cleanup()
