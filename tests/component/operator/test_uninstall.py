"""The command that removes all policies: what it waits for, and what it says when they do not go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.leaping_time import leap
from tests.fakes.operator_cluster import MemoryApi
from tests.fakes.operator_server import Server, serving

from gpushare_core.api.names import FINALIZER
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json
from gpushare_operator.main import main
from gpushare_operator.process.login import login
from gpushare_operator.process.uninstall import StillThereError, uninstall

SECONDS = 60.0


@pytest.fixture
def api() -> MemoryApi:
    return MemoryApi()


@pytest.fixture
def server(api: MemoryApi) -> Server:
    return Server(api)


@asynccontextmanager
async def client_of(server: Server, folder: Path) -> AsyncIterator[KubeClient]:
    async with serving(server, folder) as kubeconfig, KubeClient(await login(kubeconfig)) as client:
        yield client
        server.end_watches(with_error=False)


def policy(name: str, *finalizers: str, said: str = "") -> Json:
    ready = {"type": "Ready", "status": "False", "reason": "Deleting", "message": said}
    status: Json = {"status": {"conditions": [ready]}} if said else {}
    return {"metadata": {"name": name, "finalizers": list(finalizers)}, **status}


async def test_it_ends_at_once_where_there_is_none(server: Server, tmp_path: Path) -> None:
    said: list[str] = []
    async with client_of(server, tmp_path) as client:
        await uninstall(client, timeout=SECONDS, report=said.append)
    assert said == ["no policy is left, and everything is undone"]


async def test_it_deletes_all_and_waits_until_the_operator_has_let_them_go(
    api: MemoryApi, server: Server, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        api.put(paths.POLICIES, policy(name, FINALIZER, said=f"still there: what {name} made"))
    said: list[str] = []
    seen = asyncio.Event()

    def report(line: str) -> None:
        said.append(line)
        seen.set()

    async with client_of(server, tmp_path) as client:
        running = asyncio.create_task(uninstall(client, timeout=SECONDS, report=report))
        await asyncio.wait_for(seen.wait(), SECONDS)
        api.change(paths.POLICIES, "one", {"metadata": {"finalizers": []}})
        api.put(paths.POLICIES, policy("late"))
        assert not running.done()
        api.change(paths.POLICIES, "two", {"metadata": {"finalizers": []}})
        await asyncio.wait_for(running, SECONDS)
    assert "policy one: still there: what one made; policy two: still there: what two made" in said[0]
    assert api.of(paths.POLICIES) == {}
    assert sorted(api.writes) == [f"delete {paths.POLICIES}/{name}" for name in ("late", "one", "two")]


async def test_a_deletion_that_fails_is_tried_again(api: MemoryApi, server: Server, tmp_path: Path) -> None:
    api.put(paths.POLICIES, policy("one"))
    failures = iter([True, True])
    api.refuse = lambda write: write.startswith("delete") and next(failures, False)
    said: list[str] = []
    async with client_of(server, tmp_path) as client:
        await uninstall(client, timeout=SECONDS, report=said.append)
    assert [line for line in said if "cannot delete policy one yet: 500" in line] == said[:2]
    assert api.of(paths.POLICIES) == {}


async def test_after_its_time_it_says_what_is_still_there_and_what_to_do(
    api: MemoryApi, server: Server, tmp_path: Path
) -> None:
    api.put(paths.POLICIES, policy("one", FINALIZER, said="still there: the scheduler's connection"))
    async with client_of(server, tmp_path) as client:
        with pytest.raises(StillThereError) as raised:
            await uninstall(client, timeout=SECONDS, report=lambda _: leap(SECONDS))
    message = str(raised.value)
    assert "after 60 s not everything is undone" in message
    assert "policy one: still there: the scheduler's connection" in message
    assert "Check that the operator runs" in message


async def test_a_server_that_is_away_is_waited_for(api: MemoryApi, server: Server, tmp_path: Path) -> None:
    api.put(paths.POLICIES, policy("one"))
    server.failures = 2
    async with client_of(server, tmp_path) as client:
        await uninstall(client, timeout=SECONDS, report=lambda _: None)
    assert api.of(paths.POLICIES) == {}


async def test_where_the_kind_is_unknown_there_is_nothing_to_do(
    api: MemoryApi, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(*_: Any, **__: Any) -> Any:
        return await api.get(f"{paths.POLICIES}/none")

    monkeypatch.setattr(api, "list_all", unknown)
    async with client_of(server, tmp_path) as client:
        await uninstall(client, timeout=SECONDS, report=lambda _: None)


@pytest.mark.parametrize(
    ("finalizers", "seconds", "code"),
    [
        pytest.param((), 60, 0, id="gone"),
        pytest.param((FINALIZER,), 4, 1, id="still there"),  # seconds in which it looks once
    ],
)
async def test_the_command_ends_with_the_code_that_a_job_needs(
    api: MemoryApi,
    server: Server,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    finalizers: tuple[str, ...],
    seconds: int,
    code: int,
) -> None:
    api.put(paths.POLICIES, policy("one", *finalizers))
    async with serving(server, tmp_path) as kubeconfig:
        arguments = ["--kubeconfig", str(kubeconfig), "uninstall", "--timeout", str(seconds)]
        assert await asyncio.to_thread(main, arguments) == code
        server.end_watches(with_error=False)
    printed = capsys.readouterr()
    assert ("policy one: the operator has not reported on it" in printed.err) == bool(code)
