"""The extender's metrics on its host's address, for clients that the API server allows to read them."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path

import aiohttp
import pytest
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.leaping_time import leap
from tests.fakes.open_port import listening

from gpushare_core.health_server import Response
from gpushare_core.kube.credentials import Credentials
from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.endpoints import Address
from gpushare_extender.transport.listener import ListenerLimits
from gpushare_extender.verbs.metrics_access import (
    ALLOWED_SECONDS,
    MAX_REMEMBERED,
    REFUSED_SECONDS,
    MetricsAccess,
)
from gpushare_extender.verbs.metrics_port import LIMITS, metrics_endpoint, serving_metrics

SECRET = b"gpushare_extender_nodes 3\n"


@dataclass
class ApiServer:
    """Lets who has the token ``prometheus`` read the metrics."""

    asked: list[str] = field(default_factory=list)
    now: float = 0.0
    is_away: bool = False

    async def review(self, token: str) -> HTTPStatus:
        self.asked.append(token)
        if self.is_away:
            return HTTPStatus.SERVICE_UNAVAILABLE
        answers = {"prometheus": HTTPStatus.OK, "somebody": HTTPStatus.FORBIDDEN}
        return answers.get(token, HTTPStatus.UNAUTHORIZED)

    def access(self) -> MetricsAccess:
        return MetricsAccess(self.review, lambda: self.now)


async def page() -> Response:
    return Response(SECRET, content_type="text/plain")


@contextlib.asynccontextmanager
async def serving(folder: Path, server: ApiServer, limits: ListenerLimits = LIMITS) -> AsyncIterator[str]:
    keys = KeyFolder(folder)
    keys.write("first")
    endpoint = metrics_endpoint(Address("127.0.0.1", 0), keys.files, page, server.access())
    async with listening(
        endpoint.application, host="127.0.0.1", port=0, tls=endpoint.tls, limits=limits, drain=0.1
    ) as port:
        yield f"https://127.0.0.1:{port}"


async def get(url: str, **headers: str) -> tuple[int, bytes]:
    """As Prometheus asks: without a certificate of its own."""
    tls: ssl.SSLContext = caller_tls(client="")
    async with aiohttp.ClientSession() as session, session.get(url, ssl=tls, headers=headers) as response:
        return response.status, await response.read()


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        pytest.param("Bearer prometheus", HTTPStatus.OK, id="who may"),
        pytest.param("bearer prometheus", HTTPStatus.OK, id="in small letters"),
        pytest.param("Bearer somebody", HTTPStatus.FORBIDDEN, id="who may not"),
        pytest.param("Bearer made-up", HTTPStatus.UNAUTHORIZED, id="a token of nobody"),
        pytest.param("Bearer ", HTTPStatus.UNAUTHORIZED, id="no token"),
        pytest.param("Basic prometheus", HTTPStatus.UNAUTHORIZED, id="another scheme"),
        pytest.param("", HTTPStatus.UNAUTHORIZED, id="nothing"),
    ],
)
async def test_only_who_may_reads_the_metrics(tmp_path: Path, authorization: str, expected: int) -> None:
    async with serving(tmp_path, ApiServer()) as url:
        status, content = await get(f"{url}/metrics", Authorization=authorization)
    assert status == expected
    assert (content == SECRET) == (expected == HTTPStatus.OK)


@pytest.mark.parametrize("path", ["/", "/healthz", "/gpushare/filter", "/gpushare/inspect"])
async def test_nothing_else_is_answered_there(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path, ApiServer()) as url:
        status, _ = await get(url + path, Authorization="Bearer prometheus")
    assert status == HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("path", "token"), [("/metrics", "made-up"), ("/metrics", "somebody"), ("/", "prometheus")]
)
async def test_who_gets_nothing_has_to_shake_hands_again(tmp_path: Path, path: str, token: str) -> None:
    """Else anybody could cause any number of requests to the API server by one connection."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        serving(tmp_path, ApiServer()) as url,
        aiohttp.ClientSession() as session,
        session.get(url + path, ssl=caller_tls(client=""), headers=headers) as response,
    ):
        assert response.headers["Connection"] == "close"


async def test_who_reads_the_metrics_keeps_the_connection_for_the_next_time(tmp_path: Path) -> None:
    limits, opened = replace(LIMITS, timeouts=Timeouts(read=60.0)), 0
    tls, headers = caller_tls(client=""), {"Authorization": "Bearer prometheus"}

    async def count(*_: object) -> None:
        nonlocal opened
        opened += 1

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(count)
    lasting = aiohttp.TCPConnector(keepalive_timeout=3600)
    async with (
        serving(tmp_path, ApiServer(), limits) as url,
        aiohttp.ClientSession(connector=lasting, trace_configs=[trace]) as session,
    ):
        for _ in range(2):
            async with session.get(f"{url}/metrics", ssl=tls, headers=headers) as response:
                assert await response.read() == SECRET
            leap(61.0)
            await asyncio.sleep(0.01)  # timers that are due fire
    assert opened == 1


async def test_connections_without_a_request_keep_nobody_out(tmp_path: Path) -> None:
    limits = replace(LIMITS, authenticated=4, unauthenticated=4)
    async with serving(tmp_path, ApiServer(), limits) as url:
        port = int(url.rpartition(":")[2])
        strangers = [
            await asyncio.open_connection("127.0.0.1", port, ssl=caller_tls(client=""), server_hostname="")
            for _ in range(4)
        ]
        for _, writer in strangers:
            writer.write(b"GET /metrics HTTP/1.1\r\n")
            await writer.drain()
        status, _ = await get(f"{url}/metrics", Authorization="Bearer prometheus")
        for _, writer in strangers:
            writer.close()
    assert status == HTTPStatus.OK


async def test_an_answer_is_remembered_for_a_moment() -> None:
    server = ApiServer()
    access = server.access()
    for _ in range(3):
        assert await access.status("Bearer prometheus") is HTTPStatus.OK
        assert await access.status("Bearer made-up") is HTTPStatus.UNAUTHORIZED
    assert server.asked == ["prometheus", "made-up"]
    server.now = REFUSED_SECONDS
    await access.status("Bearer made-up")
    server.now = ALLOWED_SECONDS
    await access.status("Bearer prometheus")
    assert server.asked == ["prometheus", "made-up", "made-up", "prometheus"]


async def test_made_up_tokens_in_any_number_take_no_memory() -> None:
    access = ApiServer().access()
    for number in range(MAX_REMEMBERED + 10):
        await access.status(f"Bearer {number}")
    assert len(access._known) == MAX_REMEMBERED


async def test_while_the_api_server_is_away_nobody_new_is_heard_and_nothing_is_remembered_of_it() -> None:
    server = ApiServer(is_away=True)
    access = server.access()
    assert await access.status("Bearer prometheus") is HTTPStatus.SERVICE_UNAVAILABLE
    server.is_away = False
    assert await access.status("Bearer prometheus") is HTTPStatus.OK


async def test_a_token_that_is_no_header_is_not_sent_on() -> None:
    server = ApiServer()
    assert await server.access().status("Bearer a\r\nImpersonate-User: admin") is HTTPStatus.UNAUTHORIZED
    assert server.asked == []


async def test_an_address_that_cannot_be_had_keeps_nothing_else_from_being_served(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path)
    keys.write("first")
    endpoint = metrics_endpoint(Address("192.0.2.1", 9), keys.files, page, ApiServer().access())
    async with serving_metrics(endpoint):
        pass


def test_credentials_of_unknown_making_are_not_lent() -> None:
    """A client certificate of ours would count before the caller's token: everybody might read then."""
    own = Credentials("https://127.0.0.1", ssl.create_default_context, lambda: "ours")
    with pytest.raises(TypeError):
        own.of_bearer("theirs")
