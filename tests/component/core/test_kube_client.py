"""The API client against a real socket: answers, refusals, silence."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, Answer, FakeApi, cut, fake_api, status, stream
from tests.fakes.black_hole import black_hole

from gpushare_core.kube.client import JSON, KubeClient, Request
from gpushare_core.kube.credentials import (
    TOKEN_SECONDS,
    Credentials,
    RenewedToken,
    TokenSource,
    in_cluster,
)
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials(), timeout=0.5) as opened:
        yield opened


async def lines_of(client: KubeClient, *, idle: float = 5.0) -> list[bytes]:
    request = Request(path=PODS, params={"watch": "1", "resourceVersion": "1"}, accept=JSON)
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
    assert await client.read(Request(path=PODS), shape=Page) == Page(Meta("7"))


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
        pytest.param(hang, id="no answer in time"),
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


async def test_a_call_may_have_a_timeout_of_its_own(api: FakeApi) -> None:
    api.fail("GET", PODS, hang)
    async with KubeClient(api.credentials(), timeout=60) as patient:
        with pytest.raises(UnreachableError, match=PODS):
            await patient.send(Request(path=PODS, timeout=0.05))


async def test_a_refused_connection_means_that_nothing_was_sent(unused_tcp_port: int) -> None:
    nobody = Credentials(f"http://127.0.0.1:{unused_tcp_port}", ssl.create_default_context(), lambda: None)
    async with KubeClient(nobody) as client:
        with pytest.raises(NotSentError, match=PODS):
            await client.get(PODS)


async def test_the_token_is_read_anew_for_every_request(api: FakeApi, client: KubeClient) -> None:
    await client.get(PODS)
    api.bearer = "renewed"
    await client.get(PODS)
    assert [each.token for each in api.seen] == ["first", "renewed"]


async def test_a_password_goes_out_as_it_is(api: FakeApi) -> None:
    password = "Basic dTpw"  # noqa: S105
    with_password = replace(api.credentials(), token=lambda: password)
    async with KubeClient(with_password) as client:
        await client.get(PODS)
    assert api.seen[0].token == password


async def test_a_write_that_is_sent_elsewhere_is_not_done(api: FakeApi) -> None:
    """By a proxy it was followed, as a GET: a Binding looked as if it had been written."""

    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": PODS})

    api.fail("POST", PODS, elsewhere)
    through_itself = replace(api.credentials(), proxy=api.credentials().server)
    async with KubeClient(through_itself) as client:
        with pytest.raises(ApiError) as caught:
            await client.create(PODS, {})
    assert caught.value.status == 302
    assert [each.method for each in api.seen] == ["POST"]


async def test_a_server_may_be_named_with_a_slash_at_its_end(api: FakeApi) -> None:
    with_slash = replace(api.credentials(), server=api.credentials().server + "/")
    api.fail("GET", PODS, stream({"a": 1}), watch=True)
    async with KubeClient(with_slash) as client:
        await client.get(PODS)
        assert await lines_of(client) == [b'{"a": 1}']
    assert [each.path for each in api.seen] == [PODS, PODS]


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


async def test_a_silent_stream_is_given_up(api: FakeApi, client: KubeClient) -> None:
    api.version = 1  # nothing to tell
    with pytest.raises(UnreachableError, match=PODS):
        await lines_of(client, idle=0.1)


async def test_a_stream_does_not_wait_for_a_connection_as_long_as_the_kernel_does() -> None:
    """Two minutes, in which another server of the cluster might have been asked."""
    with black_hole() as (host, port):
        nobody = Credentials(f"http://{host}:{port}", ssl.create_default_context(), lambda: None)
        async with asyncio.timeout(5), KubeClient(nobody, timeout=0.1) as client:
            with pytest.raises(UnreachableError, match=PODS):
                await lines_of(client, idle=60.0)
