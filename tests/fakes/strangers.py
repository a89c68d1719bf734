"""Who reaches a health port and has nothing to ask there: connections in great number, kept open.

``strangers.py HOST PORT KIND`` prints how many of the kubelet's probes succeed meanwhile: for nodes, which
alone reach their pods.
"""

import contextlib
import resource
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

PROBES = 12
NUMBER = 1200
"""More than a container may have files open by default."""
KUBELET_WAITS = 5.0
"""``timeoutSeconds`` of our probes. A connection attempt that finds the queue full is repeated after a
second."""
KINDS = {
    "nothing at all": b"",
    "half a request": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
    "a request without end": b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 20_000,
    "a request, and stays": b"GET /healthz HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
}


def is_answered(host: str, port: int, path: str = "/healthz") -> bool:
    """Returns whether the kubelet's probe succeeds."""
    try:
        url = f"http://{host}:{port}{path}"
        return int(urllib.request.urlopen(url, timeout=KUBELET_WAITS).status) == 200
    except OSError:
        return False


@dataclass
class Strangers:
    """Keep ``NUMBER`` connections open; who is sent away comes again."""

    host: str
    port: int
    data: bytes
    one_byte: bool = False
    held: list[socket.socket] = field(default_factory=list)

    def come(self) -> None:
        self.held = [connection for connection in self.held if self._stays(connection)]
        deadline = time.monotonic() + 2.0  # a server that takes nobody any more shall not hold up the test
        while len(self.held) < NUMBER and time.monotonic() < deadline:
            self._connect()

    def leave(self) -> None:
        for connection in self.held:
            connection.close()

    def _connect(self) -> None:
        each = socket.socket()
        each.settimeout(0.2)
        try:
            each.connect((self.host, self.port))
            each.setblocking(False)  # noqa: FBT003 - the standard library's own signature
            each.send(self.data)
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


@contextlib.contextmanager
def flooded(host: str, port: int, data: bytes, *, one_byte: bool = False) -> Iterator[Strangers]:
    """Has strangers at the port who send ``data`` and stay."""
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, max(before, 4 * NUMBER)), most))
    strangers = Strangers(host, port, data, one_byte)
    strangers.come()
    try:
        yield strangers
    finally:
        strangers.leave()
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))


def answered_probes(strangers: Strangers) -> int:
    """Returns how many of ``PROBES`` succeed while the strangers are there."""
    answered = 0
    for _ in range(PROBES):
        answered += is_answered(strangers.host, strangers.port)
        strangers.come()
    return answered


def main(host: str, port: str, kind: str) -> None:
    with flooded(host, int(port), KINDS[kind]) as strangers:
        print(answered_probes(strangers))


if __name__ == "__main__":
    main(*sys.argv[1:])
