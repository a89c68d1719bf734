"""How long the extender's filter takes, call after call on one connection of HTTP/2 with mutual TLS.

Every answer is checked against the layout that filled the cluster. On a host that hostctl has edited,
``PEMS`` is its folder of the scheduler's files:
``python -m bench.filter_latency --client PEMS/client-X.pem --authorities PEMS/authorities-X.pem --nodes N``
"""

import argparse
import contextlib
import json
import socket
import ssl
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection as connect
from urllib.parse import urlsplit

from bench.cluster.cluster_objects import Layout, node_name, pending_pod
from bench.measuring.percentiles import Percentiles
from bench.readings.process_use import mebibytes
from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.events import ConnectionTerminated, DataReceived, StreamEnded, StreamReset

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.node_ranking import CANDIDATES
from gpushare_core.text.json_object import Json

DEADLINE = 60.0
"""Seconds to wait for the first right answer."""
READ_AT_ONCE = 2**16
"""Bytes."""
_CLIENT = H2Configuration(client_side=True, header_encoding=None, validate_outbound_headers=False)


class WrongAnswerError(Exception):
    """The filter passed a node without room, or fewer than there are, or more than are to be offered."""


@dataclass(frozen=True, slots=True)
class FilterLatency:
    """Of many calls with the same question, each for another pod."""

    names: int
    fitting: int
    passing: int
    milliseconds: Percentiles
    request_size: int
    """Bytes."""
    answer_size: int
    """Bytes."""


def mutual_tls(*, client: Path, authorities: Path) -> ssl.SSLContext:
    """Returns what shows ``client`` (a key and its certificate in one file) and trusts ``authorities``, for
    HTTP/2."""
    context = ssl.create_default_context(cafile=authorities)
    context.load_cert_chain(client)
    context.set_alpn_protocols(["h2"])
    return context


class Caller:
    """One connection of HTTP/2, kept open: as kube-scheduler calls."""

    def __init__(self, url: str, tls: ssl.SSLContext, *, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.hostname is None or parts.scheme != "https":
            raise ValueError(f"{url!r} is no URL such as https://127.0.0.1:{EXTENDER_PORT}")
        self._host, self._port = parts.hostname, parts.port or 443
        self._tls = tls
        self._timeout = timeout
        self._connection: _Http2Connection | None = None

    def filter(self, body: bytes) -> tuple[float, bytes]:
        """Returns the milliseconds from when the call was ready to be sent until all of its answer was there,
        and the answer: what it takes Python to write a request down is no cost of the extender's."""
        connection = self._connected()
        ready = connection.prepared("POST", "/gpushare/filter", body)
        begun = time.perf_counter()
        answer = connection.answer(ready)
        return (time.perf_counter() - begun) * 1e3, answer

    def inspect(self, node: str) -> Json:
        """Returns what the extender's ledger has of ``node``."""
        connection = self._connected()
        ready = connection.prepared("GET", f"{GPUSHARE.inspect_path}/{node}")
        found: Json = json.loads(connection.answer(ready))
        return found

    def close(self) -> None:
        """The next call opens another connection."""
        if self._connection:
            self._connection.close()
        self._connection = None

    def _connected(self) -> "_Http2Connection":
        if self._connection is None:
            connected = connect((self._host, self._port), self._timeout)
            self._connection = _Http2Connection(self._tls.wrap_socket(connected, server_hostname=self._host))
        return self._connection


@dataclass(frozen=True, slots=True)
class _Ready:
    """A request that is to be sent: what goes out at once, and the rest of its body."""

    stream: int
    parts: tuple[bytes, ...]
    """Each is written by itself, as Go's client writes headers and body."""
    rest: bytes


class _Http2Connection:
    """One call at a time. Raises ``OSError`` where no answer comes."""

    def __init__(self, encrypted: ssl.SSLSocket) -> None:
        if encrypted.selected_alpn_protocol() != "h2":
            encrypted.close()
            raise ConnectionError("the extender does not speak HTTP/2")
        self._socket = encrypted
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._http2 = H2Connection(_CLIENT)
        self._http2.initiate_connection()

    def prepared(self, method: str, path: str, body: bytes = b"") -> _Ready:
        """Returns a call; only one is to be under way."""
        http2, stream = self._http2, self._http2.get_next_available_stream_id()
        length = [("content-type", "application/json"), ("content-length", str(len(body)))] if body else []
        target = [(":method", method), (":scheme", "https"), (":authority", "extender"), (":path", path)]
        http2.send_headers(stream, target + length, end_stream=not body)
        headers = http2.data_to_send()
        rest = self._add(stream, body)
        return _Ready(stream, (headers, http2.data_to_send()), rest)

    def answer(self, ready: _Ready) -> bytes:
        for part in ready.parts:
            self._socket.sendall(part)
        answer, rest = bytearray(), ready.rest
        while not self._receive(answer):
            rest = self._add(ready.stream, rest)
            self._socket.sendall(self._http2.data_to_send())
        return bytes(answer)

    def close(self) -> None:
        self._socket.close()

    def _add(self, stream: int, body: bytes) -> bytes:
        """Has sent what the extender takes now. Returns the rest."""
        http2 = self._http2
        while body:
            room = min(http2.local_flow_control_window(stream), http2.max_outbound_frame_size)
            if room <= 0:
                break
            http2.send_data(stream, body[:room], end_stream=room >= len(body))
            body = body[room:]
        return body

    def _receive(self, answer: bytearray) -> bool:
        """Returns whether the answer is complete."""
        data = self._socket.recv(READ_AT_ONCE)
        if not data:
            raise ConnectionError("the extender has ended the connection")
        has_ended = False
        for event in self._http2.receive_data(data):
            if isinstance(event, DataReceived):
                answer += event.data
                self._http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamReset | ConnectionTerminated):
                raise ConnectionError(f"the extender gives no answer: {event}")
            has_ended = has_ended or isinstance(event, StreamEnded)
        return has_ended


def filter_request(names: list[str], *, units: int) -> bytes:
    """Returns what kube-scheduler sends to an extender with ``nodeCacheCapable``, for a pod that is new."""
    pod = pending_pod("load", units=units)
    pod["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
    arguments = {"Pod": pod, "Nodes": None, "NodeNames": names}
    return json.dumps(arguments, separators=(",", ":")).encode()


def measure(
    caller: Caller,
    layout: Layout,
    *,
    names: int,
    units: int,
    count: int = 1000,
    candidates: int = CANDIDATES,
) -> FilterLatency:
    """Calls the filter ``count`` times, after waiting for the first right answer.

    ``candidates``: as the policy says it.

    Raises:
        WrongAnswerError: an answer is not what ``layout`` makes right.
    """
    offered = [node_name(index) for index in range(names)]
    fitting = _fitting(layout, names=names, units=units)
    passing = min(len(fitting), candidates or names)
    _wait_for_right_answer(caller, offered, units=units, fitting=fitting, passing=passing, seconds=DEADLINE)
    milliseconds: list[float] = []
    body = answer = b""
    for _ in range(count):
        body = filter_request(offered, units=units)
        taken, answer = caller.filter(body)
        milliseconds.append(taken)
        _check(answer, fitting, passing=passing)
    return FilterLatency(names, len(fitting), passing, Percentiles.of(milliseconds), len(body), len(answer))


def wait_for_right_answer(
    caller: Caller,
    layout: Layout,
    *,
    names: int,
    units: int,
    candidates: int = CANDIDATES,
    seconds: float = DEADLINE,
) -> None:
    """Asks again and again until the answer is right, for so many ``seconds``.

    Raises:
        WrongAnswerError: the last answer was wrong.
        OSError: there was none.
    """
    offered = [node_name(index) for index in range(names)]
    fitting = _fitting(layout, names=names, units=units)
    passing = min(len(fitting), candidates or names)
    _wait_for_right_answer(caller, offered, units=units, fitting=fitting, passing=passing, seconds=seconds)


def _fitting(layout: Layout, *, names: int, units: int) -> set[str]:
    """Returns those of the first ``names`` nodes that have room."""
    return {node_name(index) for index in range(names) if layout.most_free(index) >= units}


def _wait_for_right_answer(
    caller: Caller,
    offered: list[str],
    *,
    units: int,
    fitting: set[str],
    passing: int,
    seconds: float,
) -> None:
    """Asks for another pod each time: one that comes again is offered every node."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            body = filter_request(offered, units=units)
            return _check(caller.filter(body)[1], fitting, passing=passing)
        except (WrongAnswerError, OSError):
            caller.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _check(answer: bytes, fitting: set[str], *, passing: int) -> None:
    result: Json = json.loads(answer)
    names = result.get("NodeNames") or ()
    if result.get("Error") or len(names) != passing or not fitting.issuperset(names):
        raise WrongAnswerError(f"{len(names)} nodes pass, {passing} should: {result.get('Error', '')}")


def main() -> None:
    options = _parse()
    layout = Layout(nodes=options.nodes, pods_per_node=options.pods_per_node)
    names = min(options.names or options.nodes, options.nodes)
    caller = Caller(options.url, mutual_tls(client=options.client, authorities=options.authorities))
    with contextlib.closing(caller):
        _show(
            measure(
                caller,
                layout,
                names=names,
                units=options.units,
                count=options.count,
                candidates=options.candidates,
            )
        )
    if options.pid:
        status = Path(f"/proc/{options.pid}/status").read_text()
        print(f"resident {mebibytes(status, 'VmRSS'):.0f} MiB")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=f"https://127.0.0.1:{EXTENDER_PORT}", help="of the extender")
    parser.add_argument("--client", type=Path, required=True, metavar="PEM", help="key and certificate")
    parser.add_argument("--authorities", type=Path, required=True, metavar="PEM", help="of the extender's")
    parser.add_argument("--nodes", type=int, required=True, help="as given to bench.fill_cluster")
    parser.add_argument("--pods-per-node", type=int, default=8)
    parser.add_argument("--names", type=int, help="offer only the first so many nodes")
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument(
        "--candidates", type=int, default=CANDIDATES, help="placement.candidates of the policy"
    )
    parser.add_argument("--pid", type=int, help="of the extender, to show its memory")
    return parser.parse_args()


def _show(latency: FilterLatency) -> None:
    taken = latency.milliseconds
    print(f"{latency.names} names, {latency.fitting} fit, {latency.passing} pass (checked every time)")
    print(f"p50 {taken.p50:.2f} p99 {taken.p99:.2f} max {taken.highest:.2f} ms")
    print(f"request {latency.request_size} bytes, answer {latency.answer_size} bytes")


if __name__ == "__main__":
    main()
