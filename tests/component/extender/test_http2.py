"""All requests of a kube-scheduler on one connection: what it may hold, and for how long."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from h2.errors import ErrorCodes
from hyperframe.frame import SettingsFrame
from tests.fakes.extender_caller import call, heard_application
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.http2_client import Http2Client, connected
from tests.fakes.http2_wire import PREFACE, wire
from tests.fakes.leaping_time import leap
from tests.fakes.open_port import listening

from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.http2 import Http2Service
from gpushare_extender.transport.listener import PROTOCOLS, ListenerLimits
from gpushare_extender.transport.messages import Handler, Request, Response, json_response
from gpushare_extender.transport.tls import ServerTls
from gpushare_extender.verbs.routes import Route, Routes

LARGEST = 100_000
REFUSED = int(ErrorCodes.REFUSED_STREAM)
CANCELLED = int(ErrorCodes.CANCEL)


def echo_at_once(request: Request) -> Response:
    return Response(request.method.encode() + b" " + request.path.encode() + b" " + request.content)


async def echo(request: Request) -> Response:
    return echo_at_once(request)


def broken_at_once(_: Request) -> Response:
    raise RuntimeError("a defect")


async def broken(request: Request) -> Response:
    return broken_at_once(request)


class Held:
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self._arrived = asyncio.Semaphore(0)

    async def __call__(self, _: Request) -> Response:
        self._arrived.release()
        await self.free.wait()
        return Response(b"late")

    async def until(self, arrived: int) -> None:
        """Returns when so many have come since the last time."""
        for _ in range(arrived):
            await self._arrived.acquire()


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    keys = KeyFolder(tmp_path)
    keys.write("first")
    return keys


class Server:
    """Serves while entered; ``stop`` begins to end it."""

    def __init__(self, keys: KeyFolder) -> None:
        self._keys = keys
        self.stop = asyncio.Event()
        self.stopped: asyncio.Task[None] | None = None
        self.port = 0

    @contextlib.asynccontextmanager
    async def client(
        self,
        handler: Handler = echo,
        *,
        timeouts: Timeouts | None = None,
        drain: float = 60.0,
        window: int = 65535,
    ) -> AsyncIterator[Http2Client]:
        ports = asyncio.get_running_loop().create_future()
        limits = ListenerLimits(timeouts or Timeouts(read=120.0, idle=120.0), handshake=120.0)
        self.stopped = asyncio.create_task(self._serve(handler, limits, drain, ports))
        self.port = await ports
        try:
            async with connected(self.port, caller_tls(), window=window) as client:
                yield client
        finally:
            self.stop.set()
            await self.stopped

    async def _serve(
        self, handler: Handler, limits: ListenerLimits, drain: float, ports: "asyncio.Future[int]"
    ) -> None:
        tls = ServerTls(self._keys.files, protocols=PROTOCOLS)
        service = Http2Service(handler, LARGEST)
        async with listening(
            heard_application(),
            host="127.0.0.1",
            port=0,
            tls=tls,
            drain=drain,
            limits=limits,
            http2=service,
        ) as port:
            ports.set_result(port)
            await self.stop.wait()


@pytest.fixture
def server(keys: KeyFolder) -> Server:
    return Server(keys)


class TestAnswers:
    async def test_a_call_is_answered_whole(self, server: Server) -> None:
        async with server.client() as client:
            exchange = await client.answer(client.ask("POST", "/gpushare/bind?x=1", b"content"))
            assert (exchange.status, exchange.content) == (200, b"POST /gpushare/bind content")
            assert exchange.headers["content-length"] == str(len(exchange.content))
            assert exchange.headers["content-type"] == "application/json"

    async def test_the_client_is_authenticated(self, server: Server) -> None:
        async def proven(request: Request) -> Response:
            return json_response([request.client_authenticated, request.port > 0])

        async with server.client(proven) as client:
            assert (await client.answer(client.ask())).content == b"[true,true]"

    async def test_many_are_answered_at_a_time_each_with_its_own(self, server: Server) -> None:
        held = Held()

        async def answer(request: Request) -> Response:
            await held(request)
            return Response(request.content)

        async with server.client(answer) as client:
            numbers = {client.ask(content=str(index).encode()): index for index in range(200)}
            await asyncio.wait_for(held.until(200), 30)
            held.free.set()
            for number, index in numbers.items():
                assert (await client.answer(number)).content == str(index).encode()

    async def test_what_needs_no_waiting_is_answered_at_once(self, server: Server) -> None:
        async with server.client(echo_at_once) as client:
            numbers = {client.ask(content=str(index).encode()): index for index in range(50)}
            for number, index in numbers.items():
                assert (await client.answer(number)).content.endswith(b" %d" % index)

    @pytest.mark.parametrize("defect", [broken, broken_at_once])
    async def test_a_defect_costs_its_own_answer_alone(self, server: Server, defect: Handler) -> None:
        def answer(request: Request) -> Response | Awaitable[Response]:
            return defect(request) if request.path == "/defect" else echo(request)

        async with server.client(answer) as client:
            assert (await client.answer(client.ask("POST", "/defect", b""))).reset == CANCELLED
            assert (await client.answer(client.ask())).status == 200

    async def test_a_question_by_head_has_no_content(self, server: Server) -> None:
        async with server.client() as client:
            exchange = await client.answer(client.ask("HEAD", "/", b""))
            assert (exchange.content, exchange.headers["content-length"]) == (b"", "7")

    async def test_an_answer_goes_as_the_client_takes_it(self, server: Server) -> None:
        async def large(_: Request) -> Response:
            return Response(b"y" * 1_000_000)

        async with server.client(large, window=1000) as client:
            assert len((await client.answer(client.ask())).content) == 1_000_000

    async def test_who_cannot_speak_it_is_answered_as_before(self, keys: KeyFolder) -> None:
        tls = ServerTls(keys.files, protocols=PROTOCOLS)
        service = Http2Service(echo, LARGEST)
        async with listening(
            heard_application(), host="127.0.0.1", port=0, tls=tls, drain=0.1, http2=service
        ) as port:
            assert await call(port, caller_tls()) == "heard"

    @pytest.mark.parametrize(
        ("method", "path", "expected"),
        [
            pytest.param("GET", "/nowhere", 404, id="no such path"),
            pytest.param("GET", "/a", 405, id="another method"),
            pytest.param("POST", "/a", 500, id="a defect"),
            pytest.param("POST", "/c", 500, id="a defect at once"),
            pytest.param("GET", "/b/n%201", 200, id="a name"),
            pytest.param("GET", "/b/", 404, id="no name"),
            pytest.param("GET", "/b/x/y", 404, id="two names"),
        ],
    )
    async def test_routes(self, server: Server, method: str, path: str, expected: int) -> None:
        async def named(request: Request) -> Response:
            return Response(request.name.encode())

        routes = Routes(
            [Route("POST", "/a", broken), Route("POST", "/c", broken_at_once), Route("GET", "/b/", named)]
        )
        async with server.client(routes.respond) as client:
            exchange = await client.answer(client.ask(method, path, b""))
            assert exchange.status == expected
            assert exchange.content == b"n 1" or b'"error"' in exchange.content


class TestDeadlines:
    async def test_a_half_sent_request_is_reset_and_the_others_go_on(self, server: Server) -> None:
        async with server.client(timeouts=Timeouts(read=0.2)) as client:
            half = client.open()
            client.send(half, b"{")
            assert (await client.answer(half)).reset == CANCELLED
            assert (await client.answer(client.ask())).status == 200

    async def test_an_answer_that_nobody_takes_is_reset(self, server: Server) -> None:
        async def large(_: Request) -> Response:
            return Response(b"y" * 100_000)

        async with server.client(large, timeouts=Timeouts(idle=60.0), window=1000) as client:
            client.takes = False
            number = client.ask()
            await client.until(lambda: bool(client.exchanges[number].content), "the beginning")
            leap(60.0)
            assert (await client.answer(number)).reset == CANCELLED

    async def test_a_connection_without_requests_is_not_kept(self, server: Server) -> None:
        async with server.client(timeouts=Timeouts(idle=60.0)) as client:
            assert (await client.answer(client.ask())).status == 200
            leap(60.0)
            await client.until(lambda: client.closed, "the connection's end")

    async def test_an_answer_has_all_the_time_it_wants(self, server: Server) -> None:
        held = Held()
        async with server.client(held, timeouts=Timeouts(read=60.0, idle=60.0)) as client:
            number = client.ask()
            await asyncio.wait_for(held.until(1), 30)
            leap(240.0)
            await asyncio.sleep(0.1)
            assert not client.closed
            held.free.set()
            assert (await client.answer(number)).content == b"late"


class TestLimits:
    async def test_a_request_that_is_too_large_is_refused_and_the_others_go_on(self, server: Server) -> None:
        async with server.client() as client:
            await client.answer(client.ask())  # from then on it knows how much the server takes
            exchange = await client.answer(client.ask(content=b"x" * (LARGEST + 1)))
            assert (exchange.status, b"nodeCacheCapable" in exchange.content) == (413, True)
            assert (await client.answer(client.ask(content=b"y"))).status == 200

    async def test_large_requests_one_after_the_other_do_not_use_up_the_window(self, server: Server) -> None:
        async with server.client() as client:
            await client.answer(client.ask())  # from then on it knows how much the server takes
            for _ in range(300):  # 30 MB: more than the window
                exchange = await client.answer(client.ask(content=b"x" * LARGEST))
                assert len(exchange.content) > LARGEST

    async def test_who_resets_all_he_asks_is_refused_after_a_while(self, server: Server) -> None:
        held = Held()
        async with server.client(held) as client:
            for _ in range(4):
                asked = [client.ask() for _ in range(256)]
                await asyncio.wait_for(held.until(256), 30)
                for number in asked:
                    client.reset(number)
            assert (await client.answer(client.ask())).reset == REFUSED
            held.free.set()

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(b"\x00\x00\x01\x09\x00\x00\x00\x00\x01x", id="out of order"),
            pytest.param(b"\x00\x00\x01\x06\x00\x00\x00\x00\x00x", id="a ping of one byte"),
            pytest.param(b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00", id="an empty window"),
        ],
    )
    async def test_what_is_not_http2_ends_the_connection(self, server: Server, data: bytes) -> None:
        async with server.client() as client:
            assert (await client.answer(client.ask())).status == 200
            client.write(data)
            await client.until(lambda: client.closed, "the connection's end")


def silent_peer(port: int) -> ssl.SSLSocket:
    """A client that has shaken hands, and then neither asks nor reads."""
    tls = caller_tls()
    tls.set_alpn_protocols(["h2"])
    peer = tls.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
    peer.sendall(PREFACE + wire(SettingsFrame(0)))
    peer.recv(1)
    return peer


@contextlib.asynccontextmanager
async def ending(server: Server, held: Held) -> AsyncIterator[tuple[Http2Client, int]]:
    """A client that was told that the connection ends, and its request that is held."""
    async with server.client(held) as client:
        number = client.ask()
        await asyncio.wait_for(held.until(1), 30)
        server.stop.set()
        await client.until(lambda: client.terminated, "the word that it ends")
        yield client, number


class TestEnd:
    async def test_what_has_come_is_answered_and_no_more_is_taken(self, server: Server) -> None:
        held = Held()
        async with ending(server, held) as (client, number):
            refused = await client.answer(client.ask())
            assert refused.reset == REFUSED
            held.free.set()
            assert (await client.answer(number)).content == b"late"
            await client.until(lambda: client.closed, "the connection's end")
            assert client.last_answered == [number, number]  # may not grow; Go sends later ones elsewhere

    async def test_who_comes_meanwhile_is_not_kept_waiting(self, server: Server) -> None:
        """He was connected, and waited without an answer until all others had theirs."""
        held = Held()
        async with ending(server, held) as (client, number):
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", server.port)
            held.free.set()
            assert (await client.answer(number)).content == b"late"

    async def test_it_does_not_wait_for_ever(self, server: Server) -> None:
        held = Held()
        async with server.client(held, drain=0.2) as client:
            client.ask()
            await asyncio.wait_for(held.until(1), 30)
            server.stop.set()
            await client.until(lambda: client.closed, "the connection's end")
            held.free.set()

    async def test_who_is_idle_and_does_not_close_his_side_does_not_use_up_the_time(
        self, server: Server
    ) -> None:
        """That there is for answers; kube-scheduler is refused meanwhile."""
        async with server.client(drain=60.0):
            peer = await asyncio.to_thread(silent_peer, server.port)
            server.stop.set()
            assert server.stopped
            await asyncio.wait_for(asyncio.shield(server.stopped), 60)
            peer.close()

    async def test_at_once_where_nothing_is_asked(self, server: Server) -> None:
        async with server.client(drain=60.0) as client:
            assert (await client.answer(client.ask())).status == 200
            server.stop.set()
            await client.until(lambda: client.terminated and client.closed, "the connection's end")
