"""Programs of an engine: when they are ready, and what is said of those that never are."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench.engines import process
from bench.engines.process import served
from bench.peers.programs import ProgramEndedError, free_port
from bench.readings import node_network

SERVER = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_GET(self):
        Handler.asked += 1
        self.send_response(503 if self.path == "/readyz" and Handler.asked < 3 else 200)
        self.end_headers()
        self.wfile.write(self.path.encode())

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One whose control plane is in this network."""

    @contextlib.contextmanager
    def here(_: int) -> Iterator[None]:
        yield

    def command(arguments: Sequence[str]) -> list[str]:
        return list(arguments)

    monkeypatch.setattr(node_network, "inside_network", here)
    monkeypatch.setattr(process, "POLL_SECONDS", 0.05)
    return SimpleNamespace(control_plane_command=command)


async def test_a_program_is_ready_once_it_says_so(cluster: Any, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", SERVER, str(port)]
    async with served(cluster, command, log=tmp_path / "server.log", port=port) as found:
        assert await found.metrics() == "/metrics"
        await found.collect_garbage()
    assert "/debug/pprof/heap?gc=1" in (tmp_path / "server.log").read_text()


async def test_a_program_that_ends_is_told_with_its_last_words(cluster: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "print('no such plugin', flush=True); raise SystemExit(3)"]
    with pytest.raises(ProgramEndedError, match="kube-scheduler ended with 3: no such plugin"):
        async with served(cluster, command, log=tmp_path / "kube-scheduler.log", port=free_port()):
            pytest.fail("it was never ready")


async def test_a_program_that_is_never_ready_is_given_up(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "START_SECONDS", 0.3)
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(TimeoutError, match=r"kube-scheduler is not ready after 0\.3 s"):
        async with served(cluster, command, log=tmp_path / "kube-scheduler.log", port=free_port()):
            pytest.fail("it was never ready")
