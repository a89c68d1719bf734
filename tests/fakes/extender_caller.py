"""Calls the extender as kube-scheduler does."""

import json

from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.samples.extender import pod_json

from gpushare_core.json_object import Json


class SchedulerCaller:
    """One connection to the extender."""

    def __init__(self, session: ClientSession, server: TestServer) -> None:
        self.session = session
        self.server = server

    async def post(self, path: str, body: Json | bytes | str) -> Json:
        """The answer, after checking what the scheduler needs of every answer."""
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

    async def filter(self, *names: str, units: int | None = 4) -> Json:
        return await self.post("/gpushare/filter", {"Pod": pod_json("a", units=units), "NodeNames": names})
