"""The process: its arguments, its end."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from gpushare_core.process.version import VERSION
from gpushare_plugin.main import main, parse_arguments, run_until_stopped, serve


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
    assert options.log_folder is None, "nothing is written on the host unless asked for"


def test_the_log_is_kept_in_the_folder_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_logger: logging.Logger
) -> None:
    missing = str(tmp_path / "missing")
    arguments = ["--node", "gpu-1", "--kubeconfig", missing, "--log-folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["gpushare-plugin", *arguments])
    handlers = len(root_logger.handlers)
    with pytest.raises(SystemExit, match="1"):
        main()
    start, line = (tmp_path / "gpushare-plugin.log").read_text().splitlines()
    assert f"gpushare-plugin {VERSION} starts" in start
    assert "cannot reach the API server" in line
    assert json.loads(line)["node"] == "gpu-1"
    assert len(root_logger.handlers) <= handlers, "what writes the file has stopped"


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    level, handlers = logger.level, logger.handlers[:]
    yield logger
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["--version"], f"gpushare-plugin {VERSION}", id="version"),
        pytest.param(["--help"], "--device-plugins-dir", id="help"),
    ],
)
def test_it_tells_about_itself(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse_arguments(arguments)
    assert end.value.code == 0
    assert text in capsys.readouterr().out
