"""No number of strangers keeps the kubelet from a response, or a program from opening files.

Each program's own pages, in a process that may have as many files open as under containerd.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.fakes.strangers import KINDS, PROBES, Strangers, answered_probes, flooded, is_answered

FILES = 1024
OWN_FILES = 150
"""Files that a program has at the most, with those of its health server; the others are for its requests."""
START = f"import asyncio, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))\n"
SERVERS = {
    "plugin": """
from gpushare_core.health_server import HealthServer, text_page
async def main(port):
    async with HealthServer(port, {"/healthz": text_page(lambda: "")}, host="127.0.0.1"):
        await asyncio.Event().wait()
""",
    "operator": """
from prometheus_client import CollectorRegistry
from gpushare_core.health_server import HealthServer
from gpushare_operator.process.health import health_pages
async def main(port):
    pages = health_pages(probe=lambda: 0.0, readiness=lambda: "at work", registry=CollectorRegistry())
    async with HealthServer(port, pages, host="127.0.0.1"):
        await asyncio.Event().wait()
""",
    "extender": """
from gpushare_extender.transport.endpoints import Address, HealthPortEndpoint, serving
from gpushare_extender.verbs.health import HealthApi
async def main(port):
    health = HealthPortEndpoint(Address("127.0.0.1", port), HealthApi(()).pages())
    async with serving([], [health], {}, drain=1.0):
        await asyncio.Event().wait()
""",
}


@dataclass
class Served:
    """The server of one program."""

    port: int
    process: "subprocess.Popen[bytes]"

    def answers(self) -> bool:
        return is_answered("127.0.0.1", self.port)

    @property
    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - names are enough


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = f"{START}{SERVERS[request.param]}\nasyncio.run(main({port}))"
    server = Served(port, subprocess.Popen([sys.executable, "-c", script]))
    deadline = time.monotonic() + 60.0
    while not server.answers():
        assert server.process.poll() is None, "the server ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield server
    server.process.kill()
    server.process.wait()


def assert_answers(served: Served, strangers: Strangers) -> None:
    assert answered_probes(strangers) == PROBES
    assert served.files < OWN_FILES


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS)
def test_the_kubelet_is_answered_however_many_strangers_send(served: Served, data: bytes) -> None:
    with flooded("127.0.0.1", served.port, data) as strangers:
        assert_answers(served, strangers)


def test_the_kubelet_is_answered_while_strangers_send_a_byte_at_a_time(served: Served) -> None:
    with flooded("127.0.0.1", served.port, b"", one_byte=True) as strangers:
        assert_answers(served, strangers)
