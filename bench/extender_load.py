"""How long the extender's filter takes, serially over one connection as kube-scheduler calls it.

Every answer is checked against the layout that filled the cluster.
``python -m bench.extender_load --url http://127.0.0.1:32766 --nodes N [--names M] [--pid PID]``
"""

import argparse
import http.client
import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.cluster_objects import Json, Layout, node_name, pod
from bench.many import Spread

DEADLINE = 60.0
"""Seconds to wait for the first right answer."""


class WrongAnswerError(Exception):
    """The filter did not pass exactly the nodes with room."""


@dataclass(frozen=True, slots=True)
class FilterLoad:
    """Milliseconds of one call, and bytes of its request and answer."""

    names: int
    passing: int
    milliseconds: Spread
    request: int
    answer: int


class Caller:
    """One connection, kept alive."""

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ValueError(f"{url!r} is no URL such as http://127.0.0.1:32766")
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def filter(self, body: bytes) -> tuple[float, bytes]:
        """Milliseconds and the answer."""
        begun = time.perf_counter()
        self._connection.request("POST", "/gpushare/filter", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse().read()
        return (time.perf_counter() - begun) * 1e3, answer

    def close(self) -> None:
        self._connection.close()


def filter_request(names: list[str], *, units: int) -> bytes:
    """As kube-scheduler sends it to an extender with ``nodeCacheCapable``; no API server knows the pod."""
    pending: Json = pod("load", units=units)
    pending["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-01-01T00:00:00Z"}
    arguments = {"Pod": pending, "Nodes": None, "NodeNames": names}
    return json.dumps(arguments, separators=(",", ":")).encode()


def measure(url: str, layout: Layout, *, names: int, units: int, count: int = 1000) -> FilterLoad:
    """Call the filter ``count`` times, after waiting for the first right answer.

    Raises:
        WrongAnswerError: an answer is not what ``layout`` makes right.
    """
    offered = [node_name(index) for index in range(names)]
    expected = [node_name(index) for index in range(names) if layout.most_free(index) >= units]
    body = filter_request(offered, units=units)
    caller = Caller(url)
    _await_right_answer(caller, body, expected)
    taken: list[float] = []
    answer = b""
    for _ in range(count):
        milliseconds, answer = caller.filter(body)
        taken.append(milliseconds)
        _check(answer, expected)
    caller.close()
    return FilterLoad(names, len(expected), Spread.of(taken), len(body), len(answer))


def _await_right_answer(caller: Caller, body: bytes, expected: list[str]) -> None:
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return _check(caller.filter(body)[1], expected)
        except (WrongAnswerError, OSError, http.client.HTTPException):
            caller.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _check(answer: bytes, expected: list[str]) -> None:
    told: Json = json.loads(answer)
    if told.get("Error") or told.get("NodeNames") != expected:
        found = len(told.get("NodeNames") or ())
        raise WrongAnswerError(f"{found} nodes pass, {len(expected)} should: {told.get('Error', '')}")


def resident(pid: int) -> float:
    """MiB of process ``pid``."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return int(fields["VmRSS"].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="of the extender")
    parser.add_argument("--nodes", type=int, required=True, help="as given to bench.extender_fill")
    parser.add_argument("--pods-per-node", type=int, default=8)
    parser.add_argument("--names", type=int, help="offer only the first so many nodes")
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--pid", type=int, help="of the extender, to tell its memory")
    options = parser.parse_args()
    layout = Layout(nodes=options.nodes, pods_per_node=options.pods_per_node)
    names = min(options.names or options.nodes, options.nodes)
    load = measure(options.url, layout, names=names, units=options.units, count=options.count)
    taken = load.milliseconds
    print(f"{load.names} names, {load.passing} pass (checked every time)")
    print(f"p50 {taken.p50:.2f} p99 {taken.p99:.2f} max {taken.most:.2f} ms")
    print(f"request {load.request} bytes, answer {load.answer} bytes")
    if options.pid:
        print(f"resident {resident(options.pid):.0f} MiB")


if __name__ == "__main__":
    main()
