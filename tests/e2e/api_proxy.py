"""A way to the API server that can be cut, and that remembers what was written through it."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import aiohttp
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from gpushare_core.kube.credentials import Credentials, from_kubeconfig

HOP_BY_HOP = {"Host", "Connection", "Transfer-Encoding", "Content-Length", "Content-Encoding"}


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the API server carried out; seconds of ``time.monotonic``."""

    method: str
    path: str
    answered: float


@dataclass
class ApiProxy:
    """Speaks plain HTTP to the client, and TLS as ``credentials`` to the API server."""

    credentials: Credentials
    writes: list[Write] = field(default_factory=list)
    url: str = ""
    _whole: threading.Event = field(default_factory=threading.Event)

    def cut(self) -> None:
        """From now on nothing comes through, in either direction, and nobody is told."""
        self._whole.clear()

    def kubeconfig(self, folder: Path) -> Path:
        """Writes a kubeconfig that leads here, and returns its path."""
        path = folder / f"kubeconfig-{self.url.rpartition(':')[2]}"
        content = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": self.url}}],
            "users": [{"name": "it", "user": {"token": "none"}}],
        }
        path.write_text(yaml.safe_dump(content))
        return path

    async def run(self, started: threading.Event, ended: asyncio.Event) -> None:
        """Serves until ``ended``; ``started`` once ``url`` is known."""
        self._whole.set()
        connector = aiohttp.TCPConnector(ssl=self.credentials.tls, limit=0)
        app = web.Application(client_max_size=2**24)
        async with aiohttp.ClientSession(connector=connector) as self._session:
            app.router.add_route("*", "/{path:.*}", self._forward)
            async with TestServer(app, shutdown_timeout=0.1) as server:
                self.url = str(server.make_url("")).rstrip("/")
                started.set()
                await ended.wait()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        await self._until_whole()
        headers = {key: value for key, value in request.headers.items() if key not in HOP_BY_HOP}
        if token := self.credentials.token():
            headers["Authorization"] = f"Bearer {token}"
        else:
            headers.pop("Authorization", None)
        async with self._session.request(
            request.method,
            self.credentials.server + request.path_qs,
            headers=headers,
            data=await request.read() or None,
            server_hostname=self.credentials.server_name,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            if request.method != "GET" and answer.status < 300:
                self.writes.append(Write(request.method, request.path, monotonic()))
            return await self._answer(request, answer)

    async def _answer(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        response.content_type = answer.content_type
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await self._until_whole()
            await response.write(chunk)
        return response

    async def _until_whole(self) -> None:
        while not self._whole.is_set():  # noqa: ASYNC110 - set in another thread
            await asyncio.sleep(0.05)


@contextmanager
def api_proxy(kubeconfig: Path) -> Iterator[ApiProxy]:
    """A proxy that runs in a thread of its own."""
    proxy, started = ApiProxy(from_kubeconfig(kubeconfig)), threading.Event()
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(proxy.run(started, ended)), daemon=True)
    thread.start()
    assert started.wait(20), "the proxy does not start"
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()
