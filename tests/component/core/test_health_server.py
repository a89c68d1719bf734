"""What a client of a health server may hold and for how long, and which one makes room for which."""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from gpushare_core.health_server import (
    METRICS_SECONDS,
    TEXT,
    HealthLimits,
    HealthServer,
    MetricsPage,
    Page,
    Response,
)

PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE_SIZE = 16 * 2**20
"""More than the kernel keeps of an answer that nobody reads."""
OK = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 2\r\nConnection: close\r\n\r\nok"
)
IPV6 = pytest.param(
    "::1", marks=pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
)


async def well() -> Response:
    return Response(b"ok", content_type=TEXT)


async def large() -> Response:
    return Response(bytes(LARGE_SIZE), content_type=TEXT)


async def defective() -> Response:
    raise KeyError("a defect")


PAGES: Mapping[str, Page] = {"/healthz": well, "/large": large, "/defective": defective}


PATIENT = HealthLimits(request=60.0, response=60.0)


@contextlib.asynccontextmanager
async def serving(limits: HealthLimits | None = None) -> AsyncIterator[HealthServer]:
    """Without ``limits``, drops no caller that a busy machine slows down."""
    async with HealthServer(0, PAGES, host="127.0.0.1", limits=limits or PATIENT) as port:
        yield port


class Caller:
    """One connection, which reads nothing before it is asked to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def rest(self, *, within: float = 30.0) -> str:
        """Returns all that comes until the server ends the connection, or breaks it off."""
        async with asyncio.timeout(within):
            with contextlib.suppress(ConnectionError):
                return (await self.reader.read()).decode()
        return ""

    async def is_open(self) -> bool:
        """Returns whether the server has not ended the connection by now."""
        with contextlib.suppress(TimeoutError):
            await self.rest(within=0.1)
            return False
        return True


@contextlib.asynccontextmanager
async def calling(port: HealthServer, data: bytes = b"", *, host: str = "127.0.0.1") -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection(host, port.port, limit=1000)
    writer.write(data)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def ask(port: HealthServer, data: bytes = PROBE, *, host: str = "127.0.0.1") -> str:
    async with calling(port, data, host=host) as caller:
        return await caller.rest()


class TestResponses:
    async def test_a_probe_is_answered_and_its_connection_ended(self) -> None:
        async with serving() as port:
            assert await ask(port) == OK

    @pytest.mark.parametrize("host", ["127.0.0.1", IPV6])
    async def test_at_an_address_of_either_family(self, host: str) -> None:
        async with HealthServer(0, PAGES, limits=PATIENT) as port:
            assert await ask(port, host=host) == OK

    @pytest.mark.parametrize("host", ["127.0.0.1", IPV6])
    async def test_at_one_address_alone(self, host: str) -> None:
        async with HealthServer(0, PAGES, host=host, limits=PATIENT) as port:
            assert await ask(port, host=host) == OK

    async def test_a_request_may_come_in_parts(self) -> None:
        async with serving() as port, calling(port) as caller:
            for number in range(len(PROBE)):
                caller.writer.write(PROBE[number : number + 1])
                await caller.writer.drain()
                await asyncio.sleep(0)
            assert await caller.rest() == OK

    async def test_who_has_asked_may_end_his_side(self) -> None:
        async with serving() as port, calling(port, PROBE) as caller:
            caller.writer.write_eof()
            assert await caller.rest() == OK

    async def test_of_several_requests_only_the_first_is_answered(self) -> None:
        async with serving() as port:
            assert await ask(port, PROBE + PROBE) == OK

    async def test_who_asks_for_the_head_gets_no_more(self) -> None:
        async with serving() as port:
            assert await ask(port, PROBE.replace(b"GET", b"HEAD")) == OK.removesuffix("ok")

    async def test_a_large_answer_is_read_to_its_end(self) -> None:
        async with serving() as port:
            assert len(await ask(port, LARGE)) > LARGE_SIZE

    @pytest.mark.parametrize(
        "line",
        [b"POST /healthz HTTP/1.1", b"GET /secret HTTP/1.1", b"GET", b"hello", b"", b"\0\xff /healthz"],
    )
    async def test_what_is_not_known_is_refused(self, line: bytes) -> None:
        async with serving() as port:
            answer = await ask(port, line + b"\r\n\r\n")
        assert answer.startswith("HTTP/1.1 404 Not Found\r\n")
        assert answer.endswith("ask for /healthz or /large or /defective")

    async def test_a_defect_fails_its_probe_and_no_other(self, caplog: pytest.LogCaptureFixture) -> None:
        async with serving() as port:
            answer = await ask(port, b"GET /defective HTTP/1.1\r\n\r\n")
            assert answer.startswith("HTTP/1.1 500 Internal Server Error\r\n")
            assert await ask(port) == OK
        assert "cannot answer /defective" in caplog.text

    async def test_a_port_that_is_taken_is_said(self) -> None:
        async with serving() as port:
            with pytest.raises(OSError, match="in use"):
                HealthServer(port.port, PAGES, host="127.0.0.1").open()

    async def test_nothing_is_open_once_it_is_closed(self) -> None:
        async with serving() as port, calling(port, PROBE[:-1]) as half, calling(port, LARGE) as unread:
            await unread.reader.readuntil(b"\r\n")
            number = port.port
            await port.close()
            assert await half.rest() == ""
            assert len(await unread.rest()) < LARGE_SIZE
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", number)


class TestDeadlines:
    @pytest.mark.parametrize("data", [b"", b"G", PROBE[:-1], PROBE + PROBE[:-1], PROBE], ids=str)
    async def test_no_connection_is_held_for_long(self, data: bytes) -> None:
        limits = HealthLimits()
        assert max(limits.request, limits.response) <= 2.0
        async with serving(limits) as port, calling(port, data) as caller:
            await caller.rest()

    async def test_a_byte_at_a_time_puts_nothing_off(self) -> None:
        async with serving(HealthLimits(request=0.3)) as port, calling(port) as caller:
            resting = asyncio.create_task(caller.rest())
            while not resting.done():
                with contextlib.suppress(ConnectionError):
                    caller.writer.write(b"G")
                await asyncio.sleep(0.02)
            assert resting.result() == ""

    async def test_an_answer_that_is_not_read_is_given_up(self) -> None:
        async with serving(HealthLimits(response=0.2)) as port, calling(port, LARGE) as caller:
            await caller.reader.readuntil(b"\r\n")
            await asyncio.sleep(0.4)
            assert len(await caller.rest()) < LARGE_SIZE

    async def test_an_answer_that_takes_too_long_is_given_up(self) -> None:
        never = asyncio.Event()

        async def stuck() -> Response:
            await never.wait()
            return await well()

        pages = {"/healthz": stuck}
        async with HealthServer(0, pages, host="127.0.0.1", limits=HealthLimits(response=0.2)) as port:
            assert await ask(port) == ""

    async def test_a_request_that_does_not_end_is_cut_off_at_once(self) -> None:
        async with serving(HealthLimits(request=60.0)) as port:
            assert await ask(port, b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 10_000) == ""


class TestRoom:
    """The time limits are too long to make room here: connections could stay for a minute."""

    LIMITS = HealthLimits(request=60.0, response=60.0, unanswered=3, unread=2)

    @pytest.mark.parametrize("data", [b"", PROBE[:-1]], ids=["nothing", "half a request"])
    async def test_the_oldest_that_has_not_asked_makes_room(self, data: bytes) -> None:
        async with serving(self.LIMITS) as port, contextlib.AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(calling(port, data)) for _ in range(5)]
            assert [await caller.rest() for caller in callers[:2]] == ["", ""]
            assert [await caller.is_open() for caller in callers[2:]] == [True, True, True]
            assert await ask(port) == OK

    async def test_the_oldest_that_does_not_read_makes_room(self) -> None:
        async with serving(self.LIMITS) as port, contextlib.AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(calling(port, LARGE)) for _ in range(4)]
            for caller in callers:
                with contextlib.suppress(ConnectionError):
                    await caller.reader.readuntil(b"\r\n")
            assert await ask(port) == OK
            lengths = [len(await caller.rest()) for caller in callers]
            assert [length > LARGE_SIZE // 2 for length in lengths] == [False, False, True, True]

    async def test_who_does_not_read_ousts_nobody_who_asks(self) -> None:
        async with serving(self.LIMITS) as port, contextlib.AsyncExitStack() as stack:
            asking = await stack.enter_async_context(calling(port, PROBE[:-1]))
            for _ in range(5):
                unread = await stack.enter_async_context(calling(port, LARGE))
                await unread.reader.readuntil(b"\r\n")
            asking.writer.write(PROBE[-1:])
            assert await asking.rest() == OK

    async def test_those_who_ask_in_the_same_moment_are_all_answered(self) -> None:
        """More than may leave their answer unread: they do not."""
        limits = HealthLimits(request=60.0, response=60.0, unanswered=40, unread=1)
        async with serving(limits) as port, contextlib.AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(calling(port, PROBE[:-1])) for _ in range(40)]
            for caller in callers:
                caller.writer.write(PROBE[-1:])
            assert {await caller.rest() for caller in callers} == {OK}

    async def test_a_whole_queue_of_strangers_does_not_oust_one_that_asks_at_once(self) -> None:
        async with serving(HealthLimits(request=60.0, unanswered=8)) as port:
            with contextlib.ExitStack() as stack:
                queue = [
                    stack.enter_context(_connected(port.port, b"" if number else PROBE))
                    for number in range(60)
                ]
                queue[0].setblocking(False)  # noqa: FBT003 - the standard library's own signature
                answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(queue[0], 1000), 30)
                assert answer.decode() == OK

    async def test_what_callers_do_wrong_does_not_fill_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with serving(self.LIMITS) as port, contextlib.AsyncExitStack() as stack:
            for _ in range(20):
                await stack.enter_async_context(calling(port, PROBE[:-1]))
            await ask(port, PROBE + b"\0garbage\r\n\r\n")
        warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert [warning.getMessage() for warning in warnings] == [
            "health port: 3 other connections have not asked yet; one is dropped"
        ]


def _connected(port: int, data: bytes) -> socket.socket:
    """A connection in the kernel's queue: the server has no turn to accept it meanwhile."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.sendall(data)
    return connected


async def test_however_many_ask_for_figures_they_are_looked_up_once_in_a_moment() -> None:
    seconds = [0.0]
    looked_up = itertools.count(1)
    registry = CollectorRegistry()
    Gauge("looks", "Looks.", registry=registry).set_function(lambda: next(looked_up))
    page = MetricsPage(registry, lambda: seconds[0])
    assert all([b"looks 1.0" in (await page()).content for _ in range(100)])
    seconds[0] = METRICS_SECONDS
    assert b"looks 2.0" in (await page()).content
