"""Requests over kept connections, against sockets that do what servers and proxies do."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes.black_hole import black_hole, silent_behind_dead
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.system_tls import system_tls

from gpushare_core.kube.transport.direct import ConnectionPool, HttpServer
from gpushare_core.kube.transport.transport import BrokenError, NotConnectedError

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Peer:
    """Reads requests without a body; ``behaviours``: one for each connection, the last one for all others."""

    behaviours: list[Behaviour]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behaviour = self.behaviours[min(self.connections, len(self.behaviours) - 1)]
        self.connections += 1
        self.open += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await behaviour(reader, writer)
        writer.close()
        async with self.changed:
            self.open -= 1
            self.changed.notify_all()

    async def request(self, reader: asyncio.StreamReader) -> None:
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))

    def answering(self, *answers: bytes) -> Behaviour:
        """Answers one request with each, then waits for the other side to end the connection."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for answer in answers:
                await self.request(reader)
                writer.write(answer)
            await reader.read()

        return answer

    def ending(self, *answers: bytes) -> Behaviour:
        """The same, and ends it by itself."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for answer in answers:
                await self.request(reader)
                writer.write(answer)

        return answer

    async def all_ended(self) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(lambda: not self.open)


@contextlib.asynccontextmanager
async def calls_to(
    peer: Peer, *, most: int = 4, idle: float = 60.0, keys: KeyFolder | None = None
) -> AsyncIterator[ConnectionPool]:
    """Encrypted where there are ``keys``."""
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=keys.files.load() if keys else None)
    url = f"{'https' if keys else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    tls = caller_tls()
    calls = ConnectionPool(HttpServer.at(url, lambda: tls), most, idle)
    try:
        yield calls
    finally:
        calls.close()
        await peer.all_ended()
        server.close()
        await server.wait_closed()


def peer_with(*behaviours: Callable[[Peer], Behaviour]) -> Peer:
    peer = Peer([])
    peer.behaviours.extend(behaviour(peer) for behaviour in behaviours)
    return peer


def get(calls: ConnectionPool, path: str = "/a") -> bytes:
    return calls.server.message("GET", path, (), None)


async def test_calls_one_after_another_share_a_connection() -> None:
    peer = peer_with(lambda it: it.answering(FINE, FINE, FINE))
    async with calls_to(peer) as calls:
        for _ in range(3):
            assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert (peer.connections, len(peer.requests)) == (1, 3)


@pytest.mark.parametrize(
    ("sent", "content"),
    [
        pytest.param(
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            b"abc",
            id="in chunks",
        ),
        pytest.param(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx",
            b"x",
            id="after an interim answer",
        ),
        pytest.param(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", b"", id="empty"),
    ],
)
async def test_an_answer_is_complete_however_it_is_written(sent: bytes, content: bytes) -> None:
    peer = peer_with(lambda it: it.answering(sent, FINE))
    async with calls_to(peer) as calls:
        assert await calls.send(get(calls), seconds=30) == (201, content, "")
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 1


async def test_an_answer_of_a_proxy_may_end_with_the_connection() -> None:
    refusal = b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<p>away"
    peer = peer_with(lambda it: it.ending(refusal), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        assert await calls.send(get(calls), seconds=30) == (503, b"<p>away", "")
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 2


async def test_when_to_come_again_is_said_by_a_header() -> None:
    refusal = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n"
    peer = peer_with(lambda it: it.answering(refusal, FINE))
    async with calls_to(peer) as calls:
        assert await calls.send(get(calls), seconds=30) == (429, b"", "7")
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")


async def test_a_server_that_ends_the_connection_after_its_answer_is_believed() -> None:
    last = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    peer = peer_with(lambda it: it.answering(last), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        for _ in range(2):
            assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 2


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="half the headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", id="half the content"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", id="half a chunk"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{}",
            id="half of the last content",
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
            id="a chunk that is not the last",
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{}", id="half the content, as of old"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
        pytest.param(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
            id="another protocol from now on",
        ),
    ],
)
async def test_what_is_no_complete_answer_is_none(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    peer = peer_with(lambda it: it.ending(sent))
    async with calls_to(peer) as calls:
        with pytest.raises(BrokenError):
            await calls.send(get(calls), seconds=30)
    assert len(peer.requests) == 1, "it was sent once"
    assert not caplog.records


async def test_what_may_be_repeated_is_sent_again_where_a_kept_connection_ends() -> None:
    peer = peer_with(lambda it: it.ending(FINE, b""), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        for _ in range(2):
            assert await calls.send(get(calls), seconds=5, is_repeatable=True) == (200, b"{}", "")
    assert (peer.connections, len(peer.requests)) == (2, 3)


async def test_what_may_not_be_repeated_is_not() -> None:
    peer = peer_with(lambda it: it.ending(FINE, b""), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        await calls.send(get(calls), seconds=30)
        with pytest.raises(BrokenError):
            await calls.send(get(calls), seconds=30)
    assert len(peer.requests) == 2


async def test_what_nobody_has_asked_for_is_no_answer_to_the_next_call() -> None:
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    peer = peer_with(lambda it: it.answering(FINE + forged), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        with contextlib.suppress(BrokenError):
            assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 2


async def test_an_answer_that_comes_too_late_is_no_answer_to_the_next_call() -> None:
    peer = peer_with(lambda it: it.answering(FINE, b""), lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")  # the next one need not connect
        with pytest.raises(TimeoutError):
            await calls.send(get(calls), seconds=0.2)
        assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 2


async def test_nothing_is_sent_on_a_connection_that_was_seen_to_end(tmp_path: Path) -> None:
    """With TLS the connection was lost only some steps later, and the request on it failed as if the server
    might have got it."""
    keys = KeyFolder(tmp_path)
    keys.write("first")
    peer = peer_with(lambda it: it.ending(FINE))
    async with calls_to(peer, keys=keys) as calls:
        for _ in range(20):
            assert await calls.send(get(calls), seconds=30) == (200, b"{}", "")
    assert peer.connections == 20


async def test_who_waits_too_long_for_his_turn_has_sent_nothing() -> None:
    peer = peer_with(lambda it: it.answering(b""))
    async with calls_to(peer, most=1) as calls:
        first = asyncio.create_task(calls.send(get(calls), seconds=60))
        await asyncio.sleep(0)
        with pytest.raises(NotConnectedError):
            await calls.send(get(calls), seconds=0.1)
        async with asyncio.timeout(30):
            while not peer.requests:  # noqa: ASYNC110 - the list alone says it
                await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.wait([first])
    assert len(peer.requests) == 1


async def test_nor_has_who_waits_too_long_for_a_connection() -> None:
    with black_hole() as (host, port):
        server = HttpServer.at(f"http://{host}:{port}", system_tls)
        with pytest.raises(NotConnectedError):
            await ConnectionPool(server, 1).send(server.message("POST", "/", (), b"{}"), seconds=0.1)


async def test_an_address_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = peer_with(lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        with black_hole() as dead:
            loop = asyncio.get_running_loop()
            alive = calls.server.host, calls.server.port
            found = [next(iter(await loop.getaddrinfo(*address, type=1))) for address in (dead, alive)]

            async def addresses(*_: object, **__: object) -> object:
                return found

            monkeypatch.setattr(loop, "getaddrinfo", addresses)
            several = ConnectionPool(HttpServer.at("http://api.example:1", system_tls), 1)
            assert await several.send(get(several), seconds=30) == (200, b"{}", "")
            several.close()


async def test_nothing_is_kept_once_they_are_closed() -> None:
    peer = peer_with(lambda it: it.answering(FINE))
    async with calls_to(peer) as calls:
        under_way = asyncio.create_task(calls.send(get(calls), seconds=30))
        await asyncio.sleep(0)
        calls.close()
        assert await under_way == (200, b"{}", "")
        await peer.all_ended()
    assert peer.connections == 1


async def test_not_more_go_on_at_a_time_than_allowed() -> None:
    peer = peer_with(lambda it: it.answering(FINE, FINE, FINE, FINE))
    async with calls_to(peer, most=2) as calls:
        found = await asyncio.gather(*(calls.send(get(calls), seconds=30) for _ in range(8)))
    assert found == [(200, b"{}", "")] * 8
    assert peer.connections <= 2


async def test_connections_that_nobody_uses_are_ended() -> None:
    peer = peer_with(lambda it: it.answering(FINE))
    async with calls_to(peer, idle=0.05) as calls:
        await asyncio.gather(*(calls.send(get(calls), seconds=30) for _ in range(3)))
        await peer.all_ended()
    assert peer.connections == 3


async def test_without_a_connection_nothing_was_sent(unused_tcp_port: int) -> None:
    server = HttpServer.at(f"http://127.0.0.1:{unused_tcp_port}", system_tls)
    with pytest.raises(NotConnectedError):
        await ConnectionPool(server, 1).send(server.message("GET", "/", (), None), seconds=30)


def test_a_request_is_written_as_http_wants_it() -> None:
    server = HttpServer.at("https://[::1]:6443/clusters/a/", system_tls, "kubernetes")
    assert (server.host, server.port, server.name) == ("::1", 6443, "kubernetes")
    assert server.message("POST", "/api/v1/x y?a=b", (("Accept", "*/*"),), b"{}") == (
        b"POST /clusters/a/api/v1/x%20y?a=b HTTP/1.1\r\n"
        b"Host: [::1]:6443\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize("text", ["a\r\nX: y", "a\nX: y", "a\rX"])
def test_nothing_makes_two_headers_of_one(text: str) -> None:
    server = HttpServer.at("http://api", system_tls)
    with pytest.raises(ValueError, match="one line"):
        server.message("GET", "/", (("Authorization", text),), None)
    assert text.encode() not in server.message("GET", f"/{text}", (), None)


@pytest.mark.parametrize(
    "url", ["", "api:6443", "ftp://api", "https://", "https://a..b", f"https://{'a' * 64}"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no URL"):
        HttpServer.at(url, system_tls)


@pytest.mark.parametrize("step", range(12))
async def test_a_call_that_is_given_up_while_it_connects_leaves_no_socket_open(step: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        calls = ConnectionPool(HttpServer.at(f"http://127.0.0.1:{listening.getsockname()[1]}", system_tls), 1)
        calling = asyncio.create_task(calls.send(get(calls), seconds=30))
        for _ in range(step):
            await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling])
        await asyncio.sleep(0)  # a transport closes its socket one step later
        listening.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            read_to_its_end(listening.accept()[0])


@pytest.mark.parametrize("step", range(12))
async def test_a_call_is_given_up_also_while_one_of_several_addresses_is_won(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connecting went on, and the task that had cancelled it waited for a response."""
    with silent_behind_dead(monkeypatch) as tried:
        calls = ConnectionPool(HttpServer.at("http://api.example:1", system_tls), 1)
        calling = asyncio.create_task(calls.send(get(calls), seconds=60))
        await tried.wait()
        for _ in range(step):
            await asyncio.sleep(0)
        calling.cancel()
        await asyncio.wait([calling], timeout=30)
        assert calling.cancelled()


def read_to_its_end(accepted: socket.socket) -> None:
    with accepted:
        accepted.settimeout(30)
        with contextlib.suppress(ConnectionError):
            while accepted.recv(1000):
                pass
