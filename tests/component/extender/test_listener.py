"""What one connection may hold and for how long, and which one is dropped for another."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.fakes.extender_caller import call, heard_application
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.open_port import listening

from gpushare_extender.transport.connection import Timeouts, read_in_time
from gpushare_extender.transport.listener import ListenerLimits
from gpushare_extender.transport.tls import ServerTls

WHOLE = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"
HALF_SENT = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"


@pytest.fixture
def tls(tmp_path: Path) -> ServerTls:
    keys = KeyFolder(tmp_path)
    keys.write("first")
    return ServerTls(keys.files)


@contextlib.asynccontextmanager
async def serving(
    limits: ListenerLimits, *, tls: ServerTls | None = None, app: web.Application | None = None
) -> AsyncIterator[int]:
    application = app or heard_application()
    async with listening(application, host="127.0.0.1", port=0, tls=tls, drain=0.1, limits=limits) as port:
        yield port


class Dialer:
    """Opens connections and keeps them."""

    def __init__(self) -> None:
        self.readers: list[asyncio.StreamReader] = []
        self.writers: list[asyncio.StreamWriter] = []

    async def dial(
        self, port: int, data: bytes = b"", *, count: int = 1, tls: ssl.SSLContext | None = None
    ) -> None:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            writer.write(data)
            self.readers.append(reader)
            self.writers.append(writer)

    async def ask(self, number: int) -> str:
        """What the connection of that number answers; an empty text when it is broken off."""
        self.writers[number].write(WHOLE)
        try:
            answer = await asyncio.wait_for(self.readers[number].readuntil(b"heard"), 30)
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""
        return answer.decode().splitlines()[-1]

    async def closed(self, *, after: int = 0, count: int | None = None) -> int:
        """Returns how many connections the server breaks off, of the ``count`` oldest but for the first
        ``after``."""
        readers = self.readers[after:][:count]
        reading = [asyncio.create_task(reader.read()) for reader in readers]
        done, pending = await asyncio.wait(reading, timeout=30)
        for task in pending:
            task.cancel()
        assert all(isinstance(task.exception(), ConnectionError | None) for task in done)
        return len(done)

    async def close(self) -> None:
        for writer in self.writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
async def dialer() -> AsyncIterator[Dialer]:
    dialer = Dialer()
    yield dialer
    await dialer.close()


def slow_application(arrived: asyncio.Event, free: asyncio.Event) -> web.Application:
    """Sets ``arrived`` with a request, and answers it when ``free`` is set."""

    async def slow(_: web.Request) -> web.Response:
        arrived.set()
        await free.wait()
        return web.Response(text="heard")

    app = web.Application(middlewares=[read_in_time])
    app.router.add_post("/", slow)
    return app


class TestDeadlines:
    @pytest.mark.parametrize("data", [HALF_SENT, b"POST / HT"], ids=["body", "headers"])
    async def test_half_sent_requests_are_not_kept(self, dialer: Dialer, data: bytes) -> None:
        async with serving(ListenerLimits(Timeouts(read=0.2), unauthenticated=200)) as port:
            await dialer.dial(port, data, count=200)
            assert await dialer.closed() == 200
            assert await call(port) == "heard"

    @pytest.mark.parametrize(
        "half",
        [
            pytest.param(HALF_SENT, id="body"),
            pytest.param(b"POST / HT", id="headers"),
        ],
    )
    async def test_nor_are_those_that_came_together_with_a_whole_one(
        self, dialer: Dialer, half: bytes
    ) -> None:
        async with serving(ListenerLimits(Timeouts(read=0.2, idle=0.4))) as port:
            await dialer.dial(port, WHOLE + half)
            assert await dialer.closed() == 1

    async def test_nor_those_that_came_while_one_was_answered(self, dialer: Dialer) -> None:
        arrived, free = asyncio.Event(), asyncio.Event()
        app = slow_application(arrived, free)
        async with serving(ListenerLimits(Timeouts(read=0.2)), app=app) as port:
            await dialer.dial(port, WHOLE)
            await asyncio.wait_for(arrived.wait(), 30)
            dialer.writers[0].write(b"POST / HT")
            await asyncio.sleep(0.3)
            assert not dialer.readers[0].at_eof(), "the answer has all the time it wants"
            free.set()
            assert await dialer.closed() == 1

    async def test_requests_one_after_the_other_have_their_time_each(self, dialer: Dialer) -> None:
        async with serving(ListenerLimits(Timeouts(read=0.3, idle=60.0))) as port:
            await dialer.dial(port)
            for _ in range(4):
                assert await dialer.ask(0) == "heard"
                await asyncio.sleep(0.15)

    async def test_an_idle_connection_ends(self, dialer: Dialer) -> None:
        async with serving(ListenerLimits(Timeouts(idle=0.2))) as port:
            await dialer.dial(port, WHOLE)
            await dialer.dial(port)
            assert await dialer.closed() == 2

    async def test_a_handshake_that_does_not_go_on_is_broken_off(
        self, tls: ServerTls, dialer: Dialer
    ) -> None:
        async with serving(ListenerLimits(handshake=0.2), tls=tls) as port:
            await dialer.dial(port)
            assert await dialer.closed() == 1


class TestRoom:
    @pytest.mark.parametrize("secure", [False, True], ids=["plain", "shaking hands"])
    async def test_the_oldest_connection_that_has_shown_nothing_makes_room(
        self, tls: ServerTls, dialer: Dialer, *, secure: bool
    ) -> None:
        async with serving(ListenerLimits(unauthenticated=3), tls=tls if secure else None) as port:
            await dialer.dial(port, count=5)
            assert await dialer.closed(count=2) == 2
            assert await call(port, caller_tls() if secure else None) == "heard"

    async def test_one_that_has_shown_its_certificate_does_not(self, tls: ServerTls, dialer: Dialer) -> None:
        """kube-scheduler opens connections that it uses only later."""
        async with serving(ListenerLimits(unauthenticated=3, handshake=60.0), tls=tls) as port:
            await dialer.dial(port, tls=caller_tls())
            await dialer.dial(port, count=8)
            assert await dialer.closed(after=1, count=5) == 5
            assert await dialer.ask(0) == "heard"
            assert not any(reader.at_eof() or reader.exception() for reader in dialer.readers[6:])

    async def test_a_certificate_of_another_authority_proves_nothing(
        self, tls: ServerTls, dialer: Dialer
    ) -> None:
        async with serving(ListenerLimits(authenticated=1), tls=tls) as port:
            await dialer.dial(port, tls=caller_tls())
            for client in ("second", ""):
                with pytest.raises((aiohttp.ClientError, OSError)):
                    await call(port, caller_tls(client=client))
            assert await dialer.ask(0) == "heard"

    async def test_among_the_authenticated_the_longest_unused_is_dropped(
        self, tls: ServerTls, dialer: Dialer
    ) -> None:
        async with serving(ListenerLimits(authenticated=2), tls=tls) as port:
            await dialer.dial(port, tls=caller_tls(), count=2)
            assert await dialer.ask(0) == "heard"
            assert await call(port, caller_tls()) == "heard"
            assert (await dialer.ask(0), await dialer.ask(1)) == ("heard", "")

    async def test_one_whose_request_is_being_answered_stays(self, tls: ServerTls, dialer: Dialer) -> None:
        arrived, free = asyncio.Event(), asyncio.Event()
        app = slow_application(arrived, free)
        async with serving(ListenerLimits(authenticated=1), tls=tls, app=app) as port:
            await dialer.dial(port, tls=caller_tls())
            asking = asyncio.create_task(dialer.ask(0))
            await asyncio.wait_for(arrived.wait(), 30)
            with pytest.raises(aiohttp.ClientError):
                await call(port, caller_tls())
            free.set()
            assert await asking == "heard"

    async def test_a_queue_of_unauthenticated_connections_does_not_drop_one_with_a_request(self) -> None:
        async with serving(ListenerLimits(unauthenticated=8)) as port:
            with contextlib.ExitStack() as stack:
                queue = [
                    stack.enter_context(_connected(port, WHOLE if not number else b""))
                    for number in range(60)
                ]
                queue[0].setblocking(False)  # noqa: FBT003 - the standard library's own signature
                answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(queue[0], 1000), 30)
                assert answer.endswith(b"heard")


def _connected(port: int, data: bytes) -> socket.socket:
    """A connection in the kernel's queue: nobody has a turn to accept it meanwhile."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.sendall(data)
    return connected
