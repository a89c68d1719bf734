"""The program as a process: its command line, its start and its end."""

import asyncio
import contextlib
import gc
import json
import shutil
import signal
import socket
import sys
import weakref
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp import web
from bench.readings.process_use import mebibytes
from tests.fakes.api_server import LEASES, PODS, SHARE_NODES, FakeApi, fake_api
from tests.fakes.extender_keys import PAIRS as AUTHORITIES
from tests.fakes.extender_keys import caller_tls
from tests.samples.extender import (
    pod_json,
    pod_request,
    pod_update,
    reference,
    share_node,
    share_node_json,
)

from gpushare_core.kube.client import KubeClient
from gpushare_core.process.version import VERSION
from gpushare_core.scheduling.fit.filter import FilterResult
from gpushare_core.text.json_object import Json
from gpushare_extender.arguments import Options
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.decide.waiting.sampled_pods import SAME_NODES
from gpushare_extender.extender import Extender, freeze_gc
from gpushare_extender.transport.endpoints import Address

PAIRS = AUTHORITIES / "first"
BIND = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(SHARE_NODES, share_node_json("n1"))
        fake.put(PODS, pod_json("a", units=4))
        yield fake


@pytest.fixture
def kubeconfig(api: FakeApi, tmp_path: Path) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.credentials().server}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def start(*arguments: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gpushare_extender.main",
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def outcome(*arguments: str | Path) -> tuple[int, str, str]:
    process = await start(*arguments)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@contextlib.asynccontextmanager
async def running(kubeconfig: Path, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """The extender, ready."""
    process = await start("--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig)
    try:
        await asyncio.wait_for(_ready(port), 60)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _ready(port: int) -> None:
    await _until(port, "/readyz", 200)


async def _until(port: int, path: str, status: int) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                    if response.status == status:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.02)


async def post(port: int, path: str, body: Json) -> Json:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}{path}", data=json.dumps(body)) as response,
    ):
        answer: Json = await response.json()
        return answer


async def test_version() -> None:
    assert await outcome("--version") == (0, f"{VERSION}\n", "")


@pytest.mark.parametrize("address", ["32766", ":1", "localhost:port", "127.0.0.1:70000"])
async def test_an_address_that_is_none_is_refused(address: str) -> None:
    code, _, stderr = await outcome("--listen", address)
    assert (code, "is not HOST:PORT" in stderr) == (2, True)


async def test_without_credentials_it_says_what_to_give(tmp_path: Path) -> None:
    code, _, stderr = await outcome("--kubeconfig", tmp_path / "nothing")
    assert (code, "is no usable kubeconfig" in stderr) == (1, True)


@pytest.mark.parametrize("options", [("--listen",), ("--listen", "--listen"), ("--health-listen",)])
async def test_a_taken_port_ends_it_with_a_message(
    kubeconfig: Path, options: tuple[str, ...], unused_tcp_port: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        free = () if "--listen" in options else ("--listen", f"127.0.0.1:{unused_tcp_port}")
        given = [part for option in options for part in (option, f"127.0.0.1:{port}")]
        code, _, stderr = await outcome(*free, *given, "--kubeconfig", kubeconfig)
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in json.loads(stderr.splitlines()[-1])["message"]


async def test_while_a_port_changes_both_are_served_and_a_taken_one_is_waited_for(
    kubeconfig: Path, unused_tcp_port: int
) -> None:
    former = unused_tcp_port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1]
        given = ("--listen", f"127.0.0.1:{wanted}", "--listen", f"127.0.0.1:{former}")
        process = await start(*given, "--kubeconfig", kubeconfig)
        await asyncio.wait_for(_until(former, "/healthz", 200), 60)
        await asyncio.wait_for(_until(former, "/readyz", 503), 60)
    try:
        await asyncio.wait_for(_ready(wanted), 60)
        await asyncio.wait_for(_ready(former), 60)
    finally:
        process.kill()
        await process.communicate()


async def test_a_former_port_that_another_program_has_keeps_nobody_from_the_new_one(
    kubeconfig: Path, unused_tcp_port: int
) -> None:
    """That it is taken may be why people chose another one; hostctl asks /readyz before it edits."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        former = taken.getsockname()[1]
        given = ("--listen", f"127.0.0.1:{unused_tcp_port}", "--listen", f"127.0.0.1:{former}")
        process = await start(*given, "--kubeconfig", kubeconfig)
        try:
            await asyncio.wait_for(_ready(unused_tcp_port), 60)
        finally:
            process.kill()
            await process.communicate()


@pytest.mark.parametrize(
    "given", [("--tls-cert",), ("--tls-cert", "--tls-key"), ("--client-ca",), ("--tls-key",)]
)
async def test_half_of_mutual_tls_is_refused(given: tuple[str, ...]) -> None:
    code, _, stderr = await outcome(*(word for option in given for word in (option, "/x.pem")))
    assert (code, "need each other" in stderr) == (2, True)


async def test_with_tls_only_the_health_port_answers_without_a_certificate(
    kubeconfig: Path, tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> None:
    port, former, health = (unused_tcp_port_factory() for _ in range(3))
    files = (
        "--tls-cert",
        tmp_path / "c.pem",
        "--tls-key",
        tmp_path / "c.key",
        "--client-ca",
        tmp_path / "ca.pem",
    )
    process = await start(
        *(
            "--listen",
            f"127.0.0.1:{port}",
            "--listen",
            f"127.0.0.1:{former}",
            "--health-listen",
            f"127.0.0.1:{health}",
            "--kubeconfig",
            kubeconfig,
        ),
        *files,
    )
    try:
        await asyncio.wait_for(_until(health, "/healthz", 200), 60)
        await asyncio.wait_for(_until(health, "/readyz", 503), 60)
        for source, target in (("server.pem", "c.pem"), ("server.key", "c.key"), ("ca.pem", "ca.pem")):
            shutil.copy(PAIRS / source, tmp_path / target)
        await asyncio.wait_for(_until(health, "/readyz", 200), 60)
        await asyncio.wait_for(_until(health, "/gpushare/inspect", 404), 60)
        await asyncio.wait_for(_until(health, "/metrics", 200), 60)
        for listened in (port, former):
            with pytest.raises(aiohttp.ClientError):
                await post(listened, "/gpushare/bind", BIND)
    finally:
        process.terminate()
        await process.communicate()


async def test_a_burst_of_connections_costs_little_memory(
    kubeconfig: Path, unused_tcp_port_factory: Callable[[], int]
) -> None:
    port, health = unused_tcp_port_factory(), unused_tcp_port_factory()
    listen = ("--listen", f"127.0.0.1:{port}", "--health-listen", f"127.0.0.1:{health}")
    tls = (
        "--tls-cert",
        PAIRS / "server.pem",
        "--tls-key",
        PAIRS / "server.key",
        "--client-ca",
        PAIRS / "ca.pem",
    )
    process = await start(*listen, *tls, "--kubeconfig", kubeconfig)
    try:
        await asyncio.wait_for(_until(health, "/readyz", 200), 60)
        before = _resident_mib(process.pid)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(200):
                _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=caller_tls())
                stack.callback(writer.close)
            assert _resident_mib(process.pid) - before < 30
    finally:
        process.terminate()
        await process.communicate()


def _resident_mib(pid: int) -> float:
    return mebibytes(Path(f"/proc/{pid}/status").read_text(), "VmRSS")


async def test_it_serves_filter_and_bind_and_stops_on_sigterm(
    api: FakeApi, kubeconfig: Path, unused_tcp_port: int
) -> None:
    async with running(kubeconfig, unused_tcp_port) as process:
        filtered = await post(
            unused_tcp_port, "/gpushare/filter", {"Pod": pod_json("a", units=4), "NodeNames": ["n1"]}
        )
        bound = await post(unused_tcp_port, "/gpushare/bind", BIND)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    assert (filtered, bound) == ({"NodeNames": ["n1"]}, {"Error": ""})
    assert api.pod("a")["spec"]["nodeName"] == "n1"


async def test_a_bind_under_way_is_finished_before_the_end(
    api: FakeApi, kubeconfig: Path, unused_tcp_port: int
) -> None:
    arrived, free = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> None:
        arrived.set()
        await free.wait()

    api.fail("POST", "/api/v1/namespaces/default/pods/a/binding", slow)
    async with running(kubeconfig, unused_tcp_port) as process:
        binding = asyncio.create_task(post(unused_tcp_port, "/gpushare/bind", BIND))
        await asyncio.wait_for(arrived.wait(), 30)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        assert process.returncode is None
        free.set()
        assert await asyncio.wait_for(binding, 30) == {"Error": ""}
        assert await asyncio.wait_for(process.wait(), 30) == 0
    assert api.pod("a")["spec"]["nodeName"] == "n1"


async def test_a_bind_that_waits_for_the_list_of_pods_is_finished_before_the_end(
    api: FakeApi, kubeconfig: Path, unused_tcp_port: int
) -> None:
    arrived, free = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> None:
        arrived.set()
        await free.wait()

    async with running(kubeconfig, unused_tcp_port) as process:
        api.fail("GET", PODS, slow)
        binding = asyncio.create_task(post(unused_tcp_port, "/gpushare/bind", BIND))
        await asyncio.wait_for(arrived.wait(), 30)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        free.set()
        assert await asyncio.wait_for(binding, 30) == {"Error": ""}
        assert await asyncio.wait_for(process.wait(), 30) == 0
    assert "holderIdentity" not in api.objects[LEASES]["", "gpushare-extender"]["spec"]


async def test_after_a_restart_the_ledger_is_the_same(
    api: FakeApi, kubeconfig: Path, unused_tcp_port: int
) -> None:
    api.put(PODS, pod_json("b", units=14))
    async with running(kubeconfig, unused_tcp_port) as process:
        assert await post(unused_tcp_port, "/gpushare/bind", BIND) == {"Error": ""}
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0
    async with running(kubeconfig, unused_tcp_port):
        again = {**BIND, "PodName": "b", "PodUID": "uid-b"}
        assert await post(unused_tcp_port, "/gpushare/bind", again) == {"Error": ""}
    assert "n1-1" in api.pod("b")["metadata"]["annotations"]["gpushare.io/allocation"]


async def test_after_a_crash_nothing_is_bound_while_a_binding_may_be_under_way(
    api: FakeApi, kubeconfig: Path, unused_tcp_port: int
) -> None:
    api.put(PODS, pod_json("b", units=14))
    async with running(kubeconfig, unused_tcp_port):
        assert await post(unused_tcp_port, "/gpushare/bind", BIND) == {"Error": ""}
    async with running(kubeconfig, unused_tcp_port):
        again = {**BIND, "PodName": "b", "PodUID": "uid-b"}
        assert "answers binds" in (await post(unused_tcp_port, "/gpushare/bind", again))["Error"]
    assert api.pod("b")["spec"].get("nodeName") is None


async def test_a_pod_that_is_bound_is_no_longer_remembered_as_offered_some_nodes(api: FakeApi) -> None:
    async with KubeClient(api.credentials()) as client:
        extender = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
        extender.api.ledger.set_pod(pod_update("uid-a", c0=4))
        extender.api.attempts.offered.offered_some("uid-a", offered=16, now=0.0)
        extender.api.binder.bound(reference("a"), "n1")
        assert len(extender.api.attempts.offered) == 0


async def test_preemption_learns_of_pods_that_were_offered_all_nodes(api: FakeApi) -> None:
    async with KubeClient(api.credentials()) as client:
        extender = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
        ledger, sampled, names = (
            extender.api.ledger,
            extender.api.attempts.sampled,
            [f"n{i}" for i in range(100)],
        )
        ledger.replace_share_nodes([*(share_node(name, 8) for name in names), share_node("room", 16)])
        for _ in range(SAME_NODES + 1):
            assert not extender.preemptions.has_seen_all("uid-a")
            result, request = FilterResult([], dict.fromkeys(names, "full")), pod_request(12)
            sampled.searched(result, ledger=ledger, uid="uid-a", request=request, names=names, now=0.0)
        assert extender.preemptions.has_seen_all("uid-a")


class Ring:
    """Refers to itself, as connections and their tasks do."""

    def __init__(self) -> None:
        self.itself = self


def test_what_was_in_use_at_one_list_and_is_not_at_the_next_is_collected() -> None:
    ring = Ring()
    alive = weakref.ref(ring)
    try:
        freeze_gc()
        del ring
        freeze_gc()
        assert alive() is None
    finally:
        gc.unfreeze()


def test_the_garbage_collector_is_kept_from_what_was_listed() -> None:
    listed = [[number] for number in range(1000)]
    health = WatchHealth("pods", settled=freeze_gc)
    try:
        health.applied()
        assert gc.get_freeze_count() > len(listed)
    finally:
        gc.unfreeze()
