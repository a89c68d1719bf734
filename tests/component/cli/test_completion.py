"""``kubectl_complete-gpushare`` as kubectl runs it, against an API server on a real socket."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, fake_api, json_answer, status
from tests.fakes.exec_plugin import is_running, kubeconfig, plugin

from gpushare_cli.completion.main import SECONDS_VARIABLE

PROGRAM = Path(sys.executable).with_name("kubectl_complete-gpushare")
PATIENT = {SECONDS_VARIABLE: "25"}
"""More time than it ever needs, however much else the machine does."""
NO_NAMES = ":4\n"
TIMEOUT = 30.0
"""Seconds until a process counts as hanging."""


@dataclass(frozen=True)
class Asked:
    status: int | None
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Shell:
    """Somebody who presses Tab."""

    kubeconfig: Path

    async def complete(self, *words: str, variables: Mapping[str, str] = PATIENT) -> Asked:
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *words,
            env={"KUBECONFIG": str(self.kubeconfig), "PATH": "/usr/bin:/bin", **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await asyncio.wait_for(process.communicate(), TIMEOUT)
        return Asked(process.returncode, output.decode(), errors.decode())


def kubeconfig_for(api: FakeApi) -> str:
    server = api.credentials().server
    return json.dumps(
        {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
            "clusters": [{"name": "one", "cluster": {"server": server}}],
            "users": [{"name": "me", "user": {"token": "secret"}}],
        }
    )


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as running:
        for name in ("gpu-1", "gpu-2"):
            running.put(SHARE_NODES, {"metadata": {"name": name}, "spec": {}})
        yield running


@pytest.fixture
def shell(api: FakeApi, tmp_path: Path) -> Shell:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig_for(api))
    return Shell(file)


async def test_names_of_nodes(shell: Shell, api: FakeApi) -> None:
    assert await shell.complete("audit", "--node", "gpu") == Asked(0, "gpu-1\ngpu-2\n:4\n", "")
    (request,) = api.seen
    assert "PartialObjectMetadataList" in request.accept


async def test_contexts_are_those_of_the_kubeconfig(shell: Shell, api: FakeApi) -> None:
    assert (await shell.complete("version", "--context", "")).stdout == "here\n:4\n"
    assert api.seen == []


async def test_cards_are_those_of_the_nodes_that_were_typed(shell: Shell, api: FakeApi) -> None:
    cards = [{"index": number, "model": "A100", "uuid": f"GPU-{number}", "units": 4} for number in (0, 3)]
    node = {"metadata": {"name": "gpu-1"}, "spec": {}, "status": {"cards": cards}}
    api.fail("GET", f"{SHARE_NODES}/gpu-1", json_answer(node))
    assert (await shell.complete("inspect", "gpu-1", "--card", "")).stdout == "0\tA100\n3\tA100\n:4\n"


async def test_a_program_that_logs_in_and_hangs_is_ended_at_once(
    shell: Shell, api: FakeApi, tmp_path: Path
) -> None:
    plugin(tmp_path, "trap '' TERM", f"echo $$ > {tmp_path}/process", "while :; do sleep 0.1; done")
    shell.kubeconfig.unlink()
    kubeconfig(tmp_path, {"server": api.credentials().server}, command="./plugin")
    assert await shell.complete("audit", "--node", "", variables={SECONDS_VARIABLE: "5"}) == Asked(
        0, NO_NAMES, ""
    )
    assert not is_running(int((tmp_path / "process").read_text()))


async def test_commands_ask_no_cluster(shell: Shell, api: FakeApi) -> None:
    assert "audit\t" in (await shell.complete("aud")).stdout
    assert api.seen == []


async def test_an_api_server_that_refuses_is_silence(shell: Shell, api: FakeApi) -> None:
    api.fail("GET", SHARE_NODES, status(403, "forbidden"))
    assert await shell.complete("audit", "--node", "") == Asked(0, NO_NAMES, "")


async def test_an_api_server_that_does_not_answer_is_silence(shell: Shell, api: FakeApi) -> None:
    async def never(_: web.Request) -> None:
        await asyncio.Event().wait()

    api.fail("GET", SHARE_NODES, never)
    assert await shell.complete("audit", "--node", "", variables={}) == Asked(0, NO_NAMES, "")


@pytest.mark.parametrize("content", [None, "", "- no\n- kubeconfig\n", '{"current-context": 5}'])
async def test_a_kubeconfig_that_is_none_is_silence(shell: Shell, content: str | None) -> None:
    shell.kubeconfig.unlink()
    if content is not None:
        shell.kubeconfig.write_text(content)
    assert await shell.complete("audit", "--node", "") == Asked(0, NO_NAMES, "")


async def test_a_namespace_that_was_typed_is_that_of_the_pods(shell: Shell, api: FakeApi) -> None:
    await shell.complete("why", "-n", "ml", "")
    assert [request.path for request in api.seen] == [PODS.replace("/pods", "/namespaces/ml/pods")]


async def test_an_option_that_makes_no_sense_is_silence(shell: Shell) -> None:
    asked = await shell.complete("audit", "--settle", "soon", "--node", "")
    assert (asked.status, asked.stderr) == (0, "")


@pytest.mark.parametrize("seconds", ["", "soon", "-1", "nan"])
async def test_seconds_that_make_no_sense_do_not_count(shell: Shell, api: FakeApi, seconds: str) -> None:
    async def never(_: web.Request) -> None:
        await asyncio.Event().wait()

    api.fail("GET", SHARE_NODES, never)
    variables = {SECONDS_VARIABLE: seconds}
    assert await shell.complete("audit", "--node", "", variables=variables) == Asked(0, NO_NAMES, "")
