"""``kubectl gpushare web`` as a process: one address, until Ctrl-C."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import yaml
from tests.component.web.served import WITHIN
from tests.fakes.interrupts import takes_interrupts
from tests.fakes.web_cluster import WebCluster

from gpushare_cli.report import ExitStatus

START = "import sys; from gpushare_cli.main import main; sys.exit(main())"


@pytest.fixture
def kubeconfig(cluster: WebCluster, tmp_path: Path) -> Path:
    file = tmp_path / "config"
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{cluster.port}"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    file.write_text(yaml.safe_dump(content))
    return file


@asynccontextmanager
async def program(kubeconfig: Path, *arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", START, "web", "--kubeconfig", str(kubeconfig), *arguments),
        stdout=PIPE,
        stderr=PIPE,
        preexec_fn=takes_interrupts,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def line_of(process: Process) -> str:
    assert process.stdout
    async with asyncio.timeout(WITHIN):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_prints_one_address_and_serves_until_it_is_ended(
    kubeconfig: Path, number: signal.Signals
) -> None:
    async with program(kubeconfig) as process:
        url = await line_of(process)
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                assert response.status == 200
            async with session.get(f"{url}events?since=1") as response:
                assert (await response.content.readline()).startswith(b"id: ")
                process.send_signal(number)
                out, err = await asyncio.wait_for(process.communicate(), WITHIN)
        assert (process.returncode, out, err) == (ExitStatus.INTERRUPTED, b"", b"")


async def test_programs_get_the_address_as_a_document(kubeconfig: Path) -> None:
    async with program(kubeconfig, "-o", "json") as process:
        document = await line_of(process)
        while not document.endswith("}"):
            document += await line_of(process)
        found = json.loads(document)
        assert found["kind"] == "ServedPage"
        assert found["url"].startswith("http://127.0.0.1:")


async def test_a_cluster_that_cannot_be_read_is_said_at_once(kubeconfig: Path, cluster: WebCluster) -> None:
    cluster.refused = 401
    async with program(kubeconfig) as process:
        out, err = await asyncio.wait_for(process.communicate(), WITHIN)
    assert (process.returncode, out) == (ExitStatus.CANNOT_LOOK, b"")
    assert b"does not accept the credentials" in err
    await cluster.stop()
    async with program(kubeconfig) as process:
        out, err = await asyncio.wait_for(process.communicate(), WITHIN)
    assert (process.returncode, out) == (ExitStatus.CANNOT_LOOK, b"")
    assert b"the API server is not reached" in err
