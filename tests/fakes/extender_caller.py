"""Calls the extender as kube-scheduler does."""

import json
import ssl

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from tests.samples.extender import pod_json

from gpushare_core.text.json_object import Json
from gpushare_extender.transport.connection import read_in_time


class SchedulerCaller:
    """One connection to the extender."""

    def __init__(self, session: ClientSession, server: TestServer) -> None:
        self.session = session
        self.server = server

    async def post(self, path: str, body: Json | bytes | str) -> Json:
        """Returns the response, after checking what kube-scheduler needs of every response."""
        data = json.dumps(body) if isinstance(body, dict) else body
        async with self.session.post(self.server.make_url(path), data=data) as response:
            assert response.status == 200
            assert "Content-Length" in response.headers, "a chunked answer costs the scheduler its connection"
            assert response.headers.get("Connection", "keep-alive") == "keep-alive"
            answer: Json = await response.json()
            return answer

    async def get(self, path: str) -> tuple[int, Json]:
        async with self.session.get(self.server.make_url(path)) as response:
            return response.status, await response.json()

    async def text(self, path: str) -> str:
        async with self.session.get(self.server.make_url(path)) as response:
            assert response.status == 200
            return await response.text()

    async def filter(self, *names: str, units: int | None = 4) -> Json:
        return await self.post("/gpushare/filter", {"Pod": pod_json("a", units=units), "NodeNames": names})


def heard_application() -> web.Application:
    """Answers every POST, once it has come in full."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="heard")

    app = web.Application(middlewares=[read_in_time])
    app.router.add_post("/", answer)
    return app


async def call(port: int, tls: ssl.SSLContext | None = None) -> str:
    """One POST on a connection of its own."""
    scheme = "https" if tls else "http"
    async with (
        ClientSession() as session,
        session.post(f"{scheme}://127.0.0.1:{port}/", ssl=tls or False, data=b"x") as response,
    ):
        return await response.text()
