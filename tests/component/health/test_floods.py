"""Strangers in any number keep no kubelet from an answer, and no program from its files.

Each program's own server, in a process that may have as many files open as containerd lets it.
"""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

FILES = 1024
STRANGERS = 1200
PROBES = 12
KUBELET_WAITS = 1.0
"""Seconds: the kubelet's default."""
OWN_FILES = 150
"""That a program has at the most, its health port's among them; the others are for its calls."""
START = f"import asyncio, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))\n"
SERVERS = {
    "plugin": """
from gpushare_plugin.health_server import HealthServer
async def main(port):
    async with HealthServer(port, {"/healthz": lambda: ""}, host="127.0.0.1"):
        await asyncio.Event().wait()
""",
    "operator": """
from prometheus_client import CollectorRegistry
from gpushare_operator.health_server import HealthServer
async def beat():
    return 0.0
async def main(port):
    async with HealthServer(beat, lambda: "at work", CollectorRegistry()).serving(port, host="127.0.0.1"):
        await asyncio.Event().wait()
""",
    "extender": """
from gpushare_extender.http.endpoints import Address, HealthEndpoint, serving
from gpushare_extender.http.health import HealthApi
async def main(port):
    health = HealthEndpoint(Address("127.0.0.1", port), HealthApi(()).pages())
    async with serving([], [health], {}, drain=1.0):
        await asyncio.Event().wait()
""",
}
KINDS = {
    "nothing at all": b"",
    "half a request": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    "a request without end": b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 100_000,
    "a request, and stays": b"GET /healthz HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
}


@dataclass
class Served:
    """The server of one program."""

    port: int
    process: "subprocess.Popen[bytes]"

    def answers(self) -> bool:
        """Returns whether the kubelet's probe succeeds."""
        try:
            url = f"http://127.0.0.1:{self.port}/healthz"
            return int(urllib.request.urlopen(url, timeout=KUBELET_WAITS).status) == 200
        except OSError:
            return False

    @property
    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - names are enough


@dataclass
class Strangers:
    """Keep ``STRANGERS`` connections open; who is sent away comes again."""

    port: int
    data: bytes
    one_byte: bool = False
    held: list[socket.socket] = field(default_factory=list)

    def come(self) -> None:
        self.held = [each for each in self.held if self._stays(each)]
        deadline = time.monotonic() + 2.0  # a server that takes nobody any more shall not hold up the test
        while len(self.held) < STRANGERS and time.monotonic() < deadline:
            self._connect()

    def leave(self) -> None:
        for each in self.held:
            each.close()

    def _connect(self) -> None:
        each = socket.socket()
        each.settimeout(0.2)
        try:
            each.connect(("127.0.0.1", self.port))
            each.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            each.send(self.data or b"")
            self.held.append(each)
        except OSError:
            each.close()

    def _stays(self, each: socket.socket) -> bool:
        try:
            if self.one_byte:
                each.send(b"G")
            if each.recv(1000):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        each.close()
        return False


@pytest.fixture(scope="module", autouse=True)
def _enough_files() -> Iterator[None]:
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4 * STRANGERS), most))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = f"{START}{SERVERS[request.param]}\nasyncio.run(main({port}))"
    server = Served(port, subprocess.Popen([sys.executable, "-c", script]))
    deadline = time.monotonic() + 20.0
    while not server.answers():
        assert server.process.poll() is None, "the server ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    yield server
    server.process.kill()
    server.process.wait()


@contextlib.contextmanager
def flooded(served: Served, data: bytes, *, one_byte: bool = False) -> Iterator[Strangers]:
    strangers = Strangers(served.port, data, one_byte)
    strangers.come()
    try:
        yield strangers
    finally:
        strangers.leave()


def assert_answers(served: Served, strangers: Strangers) -> None:
    answered, files = 0, 0
    for _ in range(PROBES):
        answered += served.answers()
        files = max(files, served.files)
        strangers.come()
    assert answered == PROBES
    assert files < OWN_FILES


@pytest.mark.parametrize("data", KINDS.values(), ids=KINDS)
def test_the_kubelet_is_answered_however_many_strangers_send(served: Served, data: bytes) -> None:
    with flooded(served, data) as strangers:
        assert_answers(served, strangers)


def test_the_kubelet_is_answered_while_strangers_send_a_byte_at_a_time(served: Served) -> None:
    with flooded(served, b"", one_byte=True) as strangers:
        assert_answers(served, strangers)
