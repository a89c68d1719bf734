"""The process: its arguments, its probes, its end."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gpushare_core.version import VERSION
from gpushare_plugin.health import HealthServer
from gpushare_plugin.main import parse_arguments, run_until_stopped, serve

PROBES = {"/healthz": lambda: "", "/readyz": lambda: "waiting"}


async def ask(port: int, request: bytes) -> str:
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        await writer.drain()
        answer = await reader.read()
        writer.close()
        return answer.decode()


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        pytest.param("GET /healthz HTTP/1.1", "200 OK", "ok", id="well"),
        pytest.param("GET /readyz?verbose HTTP/1.1", "503 Service Unavailable", "waiting", id="not ready"),
        pytest.param("GET /secret HTTP/1.1", "404 Not Found", "ask for /healthz or /readyz", id="elsewhere"),
        pytest.param("POST /healthz HTTP/1.1", "404 Not Found", "ask for", id="another verb"),
        pytest.param("hello", "404 Not Found", "ask for", id="no HTTP at all"),
    ],
)
async def test_probes_are_answered_over_http(request_line: str, status: str, body: str) -> None:
    async with HealthServer(0, PROBES, host="127.0.0.1") as server:
        answer = await ask(server.port, f"{request_line}\r\nHost: x\r\n\r\n".encode())
    head, _, told = answer.partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}\r\n")
    assert told.startswith(body)


async def test_an_endless_request_is_cut_off() -> None:
    async with HealthServer(0, {}, host="127.0.0.1") as server:
        assert await ask(server.port, b"x" * 20_000 + b"\r\n\r\n") == ""


class Part:
    """In place of the agent."""

    def __init__(self, run: Callable[[], Awaitable[None]]) -> None:
        self.run = run


async def test_sigterm_ends_the_process_well() -> None:
    async def run() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    assert await run_until_stopped(Part(run)) == 0  # type: ignore[arg-type]


async def test_a_part_that_fails_ends_the_process_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    async def fail() -> None:
        raise RuntimeError("the registrar broke")

    assert await run_until_stopped(Part(run)) == 1  # type: ignore[arg-type]
    assert "the registrar broke" in caplog.text


async def test_without_credentials_it_says_so_and_ends(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    options = parse_arguments(["--node", "gpu-1", "--kubeconfig", str(tmp_path / "missing")])
    assert await serve(options) == 1
    assert "cannot reach the API server" in caplog.text


def test_the_defaults_are_the_kubelets_own_places() -> None:
    options = parse_arguments(["--node", "gpu-1"])
    assert options.device_plugins_dir == Path("/var/lib/kubelet/device-plugins")
    assert options.pod_resources_socket == Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    assert (options.health_port, options.log_level) == (9640, "info")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["--version"], f"gpushare-plugin {VERSION}", id="version"),
        pytest.param(["--help"], "--device-plugins-dir", id="help"),
    ],
)
def test_it_tells_about_itself(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_arguments(arguments)
    assert end.value.code == 0
    assert told in capsys.readouterr().out
