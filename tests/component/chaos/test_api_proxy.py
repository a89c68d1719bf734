"""Each fault of the API proxy, between the client of our programs and a fake API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from chaos.proxy.call import Call
from chaos.proxy.fault import ApiFault, Manner
from chaos.proxy.server import ApiProxy

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.request import ApiRequest

PODS = "/api/v1/namespaces/default/pods"
WATCH = ApiRequest(path=PODS, params={"watch": "1"})
TLS = ssl.create_default_context()
SOON = 20.0
"""Seconds; far more than anything here takes, and less than any deadline of the client's."""


@dataclass
class Server:
    """Stores what is created, and tells every watch what it is fed."""

    created: list[object] = field(default_factory=list)
    watchers: list["asyncio.Queue[bytes | None]"] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, request: web.Request) -> web.Response:
        self.created.append(await request.json())
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def read(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"items": [{"name": "x" * 200}]})
        response, queue = web.StreamResponse(), asyncio.Queue[bytes | None]()
        self.watchers.append(queue)
        await response.prepare(request)
        self.opened.set()
        while (line := await queue.get()) is not None:
            await response.write(line)
        return response

    def tell(self, *events: str) -> None:
        for queue in self.watchers:
            queue.put_nowait("".join(f"{event}\n" for event in events).encode())

    def close(self) -> None:
        for queue in self.watchers:
            queue.put_nowait(None)


@dataclass
class Way:
    """From a client through the proxy to the server."""

    server: Server
    proxy: ApiProxy
    client: KubeClient
    carried_out: list[Call]

    async def create(self) -> object:
        return await self.client.create(PODS, {"metadata": {"name": "a"}})

    async def list(self) -> object:
        return await self.client.get(PODS)

    async def watch(self) -> AsyncIterator[str]:
        async for line in self.client.stream(WATCH, idle=SOON):
            yield line.decode()

    @asynccontextmanager
    async def open_watch(self) -> AsyncIterator["asyncio.Queue[str | None]"]:
        """What comes of an open watch; at its end None, ``broken`` before that if it broke."""
        received: asyncio.Queue[str | None] = asyncio.Queue()

        async def read() -> None:
            try:
                async for line in self.watch():
                    received.put_nowait(line)
            except UnreachableError:
                received.put_nowait("broken")
            received.put_nowait(None)

        self.server.opened.clear()
        reading = asyncio.create_task(read())
        await asyncio.wait_for(self.server.opened.wait(), SOON)
        self.server.tell("first")
        assert await asyncio.wait_for(received.get(), SOON) == "first"
        yield received
        reading.cancel()


def fault(manner: Manner, **how: object) -> ApiFault:
    return msgspec.convert({"manner": manner, **how}, ApiFault)


async def next_of(received: "asyncio.Queue[str | None]") -> str | None:
    return await asyncio.wait_for(received.get(), SOON)


@pytest.fixture
async def way() -> AsyncIterator[Way]:
    server = Server()
    app = web.Application()
    app.router.add_post(PODS, server.create)
    app.router.add_get(PODS, server.read)
    async with TestServer(app, shutdown_timeout=0.1) as real:
        upstream = Credentials(str(real.make_url("")).rstrip("/"), lambda: TLS, lambda: "secret")
        carried_out: list[Call] = []
        proxy = ApiProxy(upstream, carried_out=carried_out.append)
        async with (
            proxy.serving("127.0.0.1", 0),
            KubeClient(replace(upstream, server=proxy.url), timeout=SOON) as client,
        ):
            yield Way(server, proxy, client, carried_out)
        server.close()


async def test_without_a_fault_everything_passes(way: Way) -> None:
    assert await way.create() == {"kind": "Status", "status": "Success"}
    assert way.server.created == [{"metadata": {"name": "a"}}]
    assert [(change.verb, change.path) for change in way.carried_out] == [("create", PODS)]
    async with way.open_watch() as received:
        way.server.tell("second", "third")
        way.server.close()
        assert [await next_of(received) for _ in range(3)] == ["second", "third", None]


async def test_nobody_listens_until_the_fault_ends(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.REFUSED))
        assert await next_of(received) == "broken"
    with pytest.raises(NotSentError):
        await way.list()
    way.proxy.faults.end(1)
    await eventually(way.list)


async def eventually(ask: Callable[[], "asyncio.Future[object] | object"]) -> None:
    """Until the proxy listens again."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                await ask()  # type: ignore[misc]
            except NotSentError:
                await asyncio.sleep(0.01)
            else:
                return


async def test_a_reset_call_is_not_carried_out(way: Way) -> None:
    way.proxy.faults.begin(1, fault(Manner.RESET, verbs=["create"]))
    with pytest.raises(UnreachableError):
        await way.create()
    assert way.server.created == []
    assert await way.list()


async def test_a_silent_call_is_reset_when_the_fault_ends(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.SILENT))
        way.server.tell("never seen")
        asking = asyncio.create_task(way.create())
        async with asyncio.timeout(SOON):
            while way.proxy.faults.hits(1) < 2:  # noqa: ASYNC110 - the proxy's side has nothing to wait on
                await asyncio.sleep(0.01)
        done, _ = await asyncio.wait([asking], timeout=0.2)
        assert not done
        assert received.empty()
        assert way.proxy.faults.end(1) == 2
        assert await next_of(received) == "broken"
        with pytest.raises(UnreachableError):
            await asking
    assert way.server.created == []


async def test_a_hung_watch_carries_nothing_though_the_fault_has_ended(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.HUNG, verbs=["watch"]))
        await asyncio.sleep(0.05)
        assert way.proxy.faults.end(1) == 1
        way.server.tell("never seen")
        assert await way.list()
        await asyncio.sleep(0.1)
        assert received.empty()


async def test_a_slow_write_is_carried_out_though_its_caller_has_given_up(way: Way) -> None:
    way.proxy.faults.begin(1, fault(Manner.SLOW, seconds=4.0))
    with pytest.raises(UnreachableError):
        await way.client.send(ApiRequest(method="POST", path=PODS, body={}, timeout=1.5))
    assert way.server.created == []
    async with asyncio.timeout(SOON):
        while not way.carried_out:  # noqa: ASYNC110 - the server's side has nothing to wait on
            await asyncio.sleep(0.02)
    assert way.server.created == [{}]


async def test_a_slow_answer_is_whole(way: Way) -> None:
    way.proxy.faults.begin(1, fault(Manner.SLOW, seconds=0.1))
    assert await way.list() == {"items": [{"name": "x" * 200}]}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
        (409, "Conflict"),
        (403, "Forbidden"),
        (410, "Expired"),
    ],
)
async def test_a_refused_call_is_not_carried_out(way: Way, status: int, reason: str) -> None:
    way.proxy.faults.begin(1, fault(Manner.STATUS, status=status, retry_after=1))
    with pytest.raises(ApiError) as refused:
        await way.create()
    assert (refused.value.status, refused.value.reason) == (status, reason)
    assert way.server.created == []


async def test_an_open_watch_ends_at_once(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.CLOSED))
        assert await next_of(received) is None
    assert [change async for change in way.watch()] == []
    assert await way.list()


async def test_a_watch_expires(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.EXPIRED, status=410))
        event = msgspec.json.decode(await next_of(received) or "")
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
            "ERROR",
            410,
            "Expired",
        )
        assert await next_of(received) is None


async def test_an_answer_is_truncated_after_the_call_was_carried_out(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.TRUNCATED))
        assert await next_of(received) is None
        with pytest.raises(UnreachableError, match="cannot be read"):
            await way.create()
    assert way.server.created == [{"metadata": {"name": "a"}}]


async def test_an_answer_is_lost_after_the_call_was_carried_out(way: Way) -> None:
    way.proxy.faults.begin(1, fault(Manner.LOST_ANSWER))
    with pytest.raises(UnreachableError):
        await way.create()
    assert way.server.created == [{"metadata": {"name": "a"}}]
    assert await way.list()


async def test_events_come_twice_until_the_fault_ends(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.TWICE))
        await asyncio.sleep(0.05)
        way.server.tell("b", "c")
        assert [await next_of(received) for _ in range(4)] == ["b", "b", "c", "c"]
        way.proxy.faults.end(1)
        await asyncio.sleep(0.05)
        way.server.tell("d", "e")
        assert [await next_of(received) for _ in range(2)] == ["d", "e"]


async def test_late_events_come_when_the_fault_ends(way: Way) -> None:
    async with way.open_watch() as received:
        way.proxy.faults.begin(1, fault(Manner.LATE, seconds=SOON))
        await asyncio.sleep(0.05)
        way.server.tell("b", "c")
        await asyncio.sleep(0.1)
        assert received.empty()
        way.proxy.faults.end(1)
        assert [await next_of(received) for _ in range(2)] == ["b", "c"]


async def test_a_server_that_breaks_off_is_seen_as_such(way: Way) -> None:
    way.proxy.upstream = replace(way.proxy.upstream, server="http://127.0.0.1:1")
    with pytest.raises(UnreachableError):
        await way.list()
