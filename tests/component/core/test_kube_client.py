"""The API client against a real socket: answers, refusals, silence."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, Answer, FakeApi, cut, fake_api, json_answer, status, stream
from tests.fakes.black_hole import black_hole, silent_behind_dead
from tests.fakes.leaping_time import leap
from tests.fakes.system_tls import system_tls

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import (
    TOKEN_SECONDS,
    Credentials,
    RenewedToken,
    TokenSource,
    in_cluster,
)
from gpushare_core.kube.errors import (
    MAX_RETRY_AFTER,
    ApiError,
    NotSentError,
    UnreachableError,
    WatchEventTooLargeError,
)
from gpushare_core.kube.request import JSON, ApiRequest
from gpushare_core.kube.transport.proxy import MAX_EVENT


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials(), timeout=60) as opened:
        yield opened


async def lines_of(client: KubeClient, *, idle: float = 60.0) -> list[bytes]:
    request = ApiRequest(path=PODS, params={"watch": "1", "resourceVersion": "1"}, accept=JSON)
    return [line async for line in client.stream(request, idle=idle)]


async def test_an_answer_is_decoded_json(client: KubeClient) -> None:
    answer = await client.get(PODS)
    assert answer["items"] == []


async def test_read_decodes_only_the_shape_asked_for(api: FakeApi, client: KubeClient) -> None:
    class Meta(msgspec.Struct):
        resourceVersion: str  # noqa: N815

    class Page(msgspec.Struct):
        metadata: Meta

    api.version = 7
    assert await client.read(ApiRequest(path=PODS), shape=Page) == Page(Meta("7"))


@pytest.mark.parametrize(
    ("code", "final"),
    [
        pytest.param(400, True, id="bad request"),
        pytest.param(403, True, id="forbidden"),
        pytest.param(404, True, id="not found"),
        pytest.param(409, True, id="conflict"),
        pytest.param(408, False, id="request timeout"),
        pytest.param(429, False, id="too many requests"),
        pytest.param(500, False, id="server error"),
        pytest.param(503, False, id="unavailable"),
    ],
)
async def test_a_refusal_tells_what_the_server_told(
    api: FakeApi, client: KubeClient, *, code: int, final: bool
) -> None:
    api.fail("GET", PODS, status(code, "because of this"))
    with pytest.raises(ApiError, match="because of this") as caught:
        await client.get(PODS)
    assert (caught.value.status, caught.value.is_final) == (code, final)


@pytest.mark.parametrize(
    ("code", "told", "seconds"),
    [
        pytest.param(429, "7", 7.0, id="of 429"),
        pytest.param(503, " 1 ", 1.0, id="of 503"),
        pytest.param(503, "86400", MAX_RETRY_AFTER, id="too long"),
        pytest.param(409, "7", 0.0, id="of what time does not help"),
        pytest.param(503, "Wed, 25 Nov 2026 07:28:00 GMT", 0.0, id="a date"),
        pytest.param(503, "-1", 0.0, id="no number"),
    ],
)
@pytest.mark.parametrize("way", ["call", "by a proxy", "watch"])
async def test_a_refusal_tells_when_to_come_again(
    api: FakeApi, way: str, code: int, told: str, seconds: float
) -> None:
    credentials = api.credentials()
    proxy = credentials.server if way == "by a proxy" else None
    api.fail("GET", PODS, status(code, **{"Retry-After": told}), watch=way == "watch")
    clock = asyncio.get_running_loop().time
    async with KubeClient(replace(credentials, proxy=proxy)) as client:
        begun = clock()
        with pytest.raises(ApiError) as caught:
            await (lines_of(client) if way == "watch" else client.get(PODS))
        asked = client.asked_to_wait
        assert seconds - (clock() - begun) <= asked <= seconds
    assert caught.value.retry_after == seconds


async def test_a_refusal_by_a_proxy_is_quoted(api: FakeApi, client: KubeClient) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(status=502, text="<h1>Bad Gateway</h1>")

    api.fail("GET", PODS, page)
    with pytest.raises(ApiError, match="Bad Gateway"):
        await client.get(PODS)


async def hang(_: web.Request) -> web.Response:
    await asyncio.sleep(60)
    return web.Response()


async def garbage(_: web.Request) -> web.Response:
    return web.Response(text="<html>log in first</html>")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(cut, id="connection cut"),
        pytest.param(garbage, id="not JSON"),
    ],
)
async def test_without_a_complete_answer_the_outcome_is_unknown(
    api: FakeApi, client: KubeClient, answer: Answer
) -> None:
    path = "/api/v1/namespaces/default/pods/a/binding"
    api.fail("POST", path, answer)
    with pytest.raises(UnreachableError) as caught:
        await client.create(path, {})
    assert not isinstance(caught.value, NotSentError)


async def test_nor_is_it_known_without_an_answer_in_time(api: FakeApi, client: KubeClient) -> None:
    path = "/api/v1/namespaces/default/pods/a/binding"
    api.fail("POST", path, hang)
    await client.get(PODS)  # connected: the next call is sent at once
    with pytest.raises(UnreachableError) as caught:
        await client.send(ApiRequest(method="POST", path=path, body={}, timeout=0.3))
    assert not isinstance(caught.value, NotSentError)


async def test_a_call_may_have_a_timeout_of_its_own(api: FakeApi) -> None:
    api.fail("GET", PODS, hang)
    async with KubeClient(api.credentials(), timeout=60) as patient:
        with pytest.raises(UnreachableError, match=PODS):
            await patient.send(ApiRequest(path=PODS, timeout=0.05))


async def test_a_refused_connection_means_that_nothing_was_sent(unused_tcp_port: int) -> None:
    nobody = Credentials(f"http://127.0.0.1:{unused_tcp_port}", system_tls, lambda: None)
    async with KubeClient(nobody) as client:
        with pytest.raises(NotSentError, match=PODS):
            await client.get(PODS)


async def test_the_token_is_read_anew_for_every_request(api: FakeApi, client: KubeClient) -> None:
    await client.get(PODS)
    api.bearer = "renewed"
    await client.get(PODS)
    assert [request.token for request in api.seen] == ["first", "renewed"]


async def test_a_password_goes_out_as_it_is(api: FakeApi) -> None:
    password = "Basic dTpw"  # noqa: S105
    with_password = replace(api.credentials(), token=lambda: password)
    async with KubeClient(with_password) as client:
        await client.get(PODS)
    assert api.seen[0].token == password


async def test_a_write_that_is_sent_elsewhere_is_not_done(api: FakeApi) -> None:
    """By a proxy the redirect was followed, as a GET: a Binding looked as if it had been written."""

    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": PODS})

    api.fail("POST", PODS, elsewhere)
    through_itself = replace(api.credentials(), proxy=api.credentials().server)
    async with KubeClient(through_itself) as client:
        with pytest.raises(ApiError) as caught:
            await client.create(PODS, {})
    assert caught.value.status == 302
    assert [request.method for request in api.seen] == ["POST"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
async def test_a_write_of_which_nobody_knows_is_sent_once(api: FakeApi, method: str) -> None:
    """By a proxy PUT and DELETE were sent again: the second response was a conflict with what the first had
    done."""
    api.fail(method, PODS, cut)
    async with KubeClient(replace(api.credentials(), proxy=api.credentials().server)) as client:
        await client.get(PODS)
        with pytest.raises(UnreachableError):
            await client.send(ApiRequest(method=method, path=PODS, body={}))
    assert [request.method for request in api.seen] == ["GET", method]


async def test_reading_by_a_proxy_is_tried_once_more_where_a_connection_ends(api: FakeApi) -> None:
    async with KubeClient(replace(api.credentials(), proxy=api.credentials().server)) as client:
        api.fail("GET", PODS, cut)
        await client.get(PODS)
        api.fail("GET", PODS, cut, cut)
        with pytest.raises(UnreachableError):
            await client.get(PODS)
    assert len(api.seen) == 4


async def test_a_call_by_a_proxy_ends_in_time_also_where_it_is_tried_again(api: FakeApi) -> None:
    api.fail("GET", PODS, cut, hang)
    async with KubeClient(replace(api.credentials(), proxy=api.credentials().server), timeout=0.3) as client:
        async with asyncio.timeout(30):
            with pytest.raises(UnreachableError):
                await client.get(PODS)


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("way", ["by a proxy", "watch"])
async def test_a_call_is_given_up_also_while_one_of_several_addresses_is_won(
    way: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch that was being opened again held up the task that had cancelled it, until the server sent
    something."""
    with silent_behind_dead(monkeypatch) as tried:
        named = Credentials("http://api.example:1", system_tls, lambda: None)
        proxied = replace(named, proxy="http://proxy.example:1")
        async with KubeClient(proxied if way == "by a proxy" else named, timeout=60) as client:
            calling = asyncio.create_task(
                client.get(PODS) if way == "by a proxy" else lines_of(client, idle=60.0)
            )
            await tried.wait()
            for _ in range(step):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.wait([calling], timeout=30)
            assert calling.cancelled()


async def test_what_has_no_version_is_no_list(api: FakeApi, client: KubeClient) -> None:
    """Such as a Status that a proxy answers with 200. It raised a KeyError."""
    api.fail("GET", PODS, json_answer({"kind": "Status", "metadata": {}, "code": 500}))
    with pytest.raises(UnreachableError, match="resourceVersion"):
        [page async for page in client.pages(PODS, limit=5)]


async def test_a_server_may_be_named_with_a_slash_at_its_end(api: FakeApi) -> None:
    with_slash = replace(api.credentials(), server=api.credentials().server + "/")
    api.fail("GET", PODS, stream({"a": 1}), watch=True)
    async with KubeClient(with_slash) as client:
        await client.get(PODS)
        assert await lines_of(client) == [b'{"a": 1}']
    assert [request.path for request in api.seen] == [PODS, PODS]


def _no_token() -> str:
    raise FileNotFoundError("token")


@pytest.mark.parametrize("token", [_no_token, lambda: "two\nlines"], ids=["unreadable", "of two lines"])
@pytest.mark.parametrize("is_watch", [False, True], ids=["call", "watch"])
async def test_without_a_usable_token_nothing_is_sent(
    api: FakeApi, token: TokenSource, *, is_watch: bool
) -> None:
    async with KubeClient(replace(api.credentials(), token=token)) as client:
        with pytest.raises(UnreachableError if is_watch else NotSentError, match=PODS):
            await (lines_of(client) if is_watch else client.create(PODS, {}))
    assert not api.seen


def test_a_service_account_token_renewed_on_disk_is_used(tmp_path: Path) -> None:
    authority = ssl.get_default_verify_paths().cafile
    (tmp_path / "ca.crt").write_bytes(Path(authority).read_bytes() if authority else b"")
    (tmp_path / "token").write_text("first\n")
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "::1"}, tmp_path)
    (tmp_path / "token").write_text("second\n")
    assert (found.server, found.token()) == ("https://[::1]:443", "second\n")


def test_a_renewed_token_is_read_again_after_a_while(tmp_path: Path) -> None:
    moments = iter([0.0, 0.0, TOKEN_SECONDS - 1, TOKEN_SECONDS, TOKEN_SECONDS])
    token = RenewedToken(tmp_path / "token", lambda: next(moments))
    (tmp_path / "token").write_text("first")
    assert token() == "first"
    (tmp_path / "token").write_text("second")
    assert [token(), token()] == ["first", "second"]


@pytest.mark.parametrize("content", [None, "", "\n"], ids=["gone", "empty", "blank"])
def test_a_token_that_cannot_be_read_for_the_moment_leaves_the_one_before(
    tmp_path: Path, content: str | None
) -> None:
    """With an empty token every request was anonymous, and forbidden."""
    now = 0.0
    token = RenewedToken(tmp_path / "token", lambda: now)
    (tmp_path / "token").write_text("first")
    assert token() == "first"
    now += TOKEN_SECONDS
    (tmp_path / "token").unlink()
    if content is not None:
        (tmp_path / "token").write_text(content)
    assert token() == "first"
    now += TOKEN_SECONDS
    (tmp_path / "token").write_text("second")
    assert token() == "second"


def test_an_empty_token_is_none(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    with pytest.raises(ValueError, match="token is empty"):
        RenewedToken(tmp_path / "token")()


async def test_a_stream_yields_lines_however_they_are_cut(api: FakeApi, client: KubeClient) -> None:
    long = b'{"x":"' + b"y" * 1_000_000 + b'"}'
    api.fail("GET", PODS, stream(b'{"a"', b":1}\n\n{}\n" + long, b"\n"), watch=True)
    assert await lines_of(client) == [b'{"a":1}', b"{}", long]


async def test_the_unfinished_rest_of_a_stream_is_no_line(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", PODS, stream({"a": 1}, b'{"half'), watch=True)
    assert await lines_of(client) == [b'{"a": 1}']


async def test_a_refused_stream_raises_what_the_server_told(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", PODS, status(410, "too old"), watch=True)
    with pytest.raises(ApiError, match="too old") as caught:
        await lines_of(client)
    assert caught.value.status == 410


def dripping(drop: bytes, *, begins: bytes = b"") -> Answer:
    """A watch that sends ``begins``, and ``drop`` again and again."""

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(begins)
        for _ in range(1000):
            await response.write(drop)
            await asyncio.sleep(0.02)
        return response

    return drip


@pytest.mark.parametrize("drop", [b"\n", b"x"], ids=["blank lines", "half a line"])
async def test_what_is_no_event_is_no_sign_of_the_server(
    api: FakeApi, client: KubeClient, drop: bytes
) -> None:
    """Such a watch was listened to for ever."""
    api.fail("GET", PODS, dripping(drop, begins=b"{}\n"), watch=True)
    lines = client.stream(ApiRequest(path=PODS, params={"watch": "1"}), idle=0.3)
    async with asyncio.timeout(30):
        with pytest.raises(UnreachableError, match="TimeoutError"):
            [line async for line in lines]


async def test_events_may_come_as_slowly_as_they_are_taken(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", PODS, stream({"a": 1}, {"b": 1}), watch=True)
    taken = 0
    async for _ in client.stream(ApiRequest(path=PODS, params={"watch": "1"}), idle=60):
        taken += 1
        leap(61)
        await asyncio.sleep(0.01)  # timers that are due fire
    assert taken == 2


async def test_a_line_without_end_ends_the_watch(
    api: FakeApi, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it was kept."""
    assert MAX_EVENT >= 10 * 2**20, "etcd takes 1.5 MiB, and each byte may be six of JSON"
    monkeypatch.setattr("gpushare_core.kube.transport.proxy.MAX_EVENT", 2**20)
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        for _ in range(500):
            await response.write(b"x" * 2**16)
            sent += 2**16
        return response

    api.fail("GET", PODS, endless, watch=True)
    with pytest.raises(WatchEventTooLargeError, match="without the end of a line"):
        await lines_of(client)
    assert sent < 16 * 2**20


async def test_headers_that_never_end_are_not_waited_for() -> None:
    """Each byte was a sign."""
    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for letter in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
                writer.write(bytes([letter]))
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.timeout(30):
        async with KubeClient(Credentials(url, system_tls, lambda: None)) as client:
            with pytest.raises(UnreachableError, match="TimeoutError"):
                await lines_of(client, idle=0.3)
        await ended.wait()


async def test_a_silent_stream_is_given_up(api: FakeApi, client: KubeClient) -> None:
    api.version = 1  # nothing to tell
    with pytest.raises(UnreachableError, match=PODS):
        await lines_of(client, idle=0.1)


async def test_a_stream_does_not_wait_for_a_connection_as_long_as_the_kernel_does() -> None:
    """Two minutes, in which another server of the cluster might have been asked."""
    with black_hole() as (host, port):
        nobody = Credentials(f"http://{host}:{port}", system_tls, lambda: None)
        async with asyncio.timeout(30), KubeClient(nobody, timeout=0.1) as client:
            with pytest.raises(UnreachableError, match=PODS):
                await lines_of(client, idle=60.0)
