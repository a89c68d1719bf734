"""Several addresses at a time, while the port is being changed."""

import asyncio
import socket
from pathlib import Path

import pytest
from tests.fakes.extender_caller import heard_application
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.http2_client import connected

from gpushare_extender.transport.endpoints import Address, Endpoint, serving
from gpushare_extender.transport.http2 import Http2Service
from gpushare_extender.transport.listener import PROTOCOLS, ListenerLimits
from gpushare_extender.transport.messages import Request, Response
from gpushare_extender.transport.tls import ServerTls


def free_address() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return Address("127.0.0.1", bound.getsockname()[1])


@pytest.fixture
def tls(tmp_path: Path) -> ServerTls:
    keys = KeyFolder(tmp_path)
    keys.write("first")
    return ServerTls(keys.files, protocols=PROTOCOLS)


async def test_all_ports_end_at_the_same_time(tls: ServerTls) -> None:
    """One took new requests while those of the other had their time, and only then its own had theirs."""
    arrived, free, stop = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()

    async def held(_: Request) -> Response:
        arrived.release()
        await free.wait()
        return Response(b"late")

    async def serve() -> None:
        async with serving(calls, [], {}, drain=60.0):
            served.set()
            await stop.wait()

    addresses = [free_address() for _ in range(2)]
    calls = [
        Endpoint(address, heard_application(), tls, ListenerLimits(), Http2Service(held, 1000))
        for address in addresses
    ]
    served = asyncio.Event()
    serving_task = asyncio.create_task(serve())
    await asyncio.wait_for(served.wait(), 30)
    async with (
        connected(addresses[0].port, caller_tls()) as one,
        connected(addresses[1].port, caller_tls()) as other,
    ):
        asked = [(client, client.ask()) for client in (one, other)]
        for _ in asked:
            await asyncio.wait_for(arrived.acquire(), 30)
        stop.set()
        for client, _ in asked:
            await client.until(lambda client=client: client.terminated, "the word that it ends")  # type: ignore[misc]
        for address in addresses:
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*address)
        free.set()
        for client, number in asked:
            assert (await client.answer(number)).content == b"late"
    await serving_task
