"""The whole process, kopf included, against a fake API server on a socket."""

import argparse
import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from kopf._cogs.aiokits import aiotasks
from tests.fakes.operator_cluster import NAMESPACE, Cluster
from tests.fakes.operator_server import Server, serving
from tests.fakes.system_tls import system_tls

from gpushare_core.api.names import SERVED_ANNOTATION
from gpushare_core.health_server import CannotServeError
from gpushare_core.kube import paths
from gpushare_core.kube.credentials import Credentials
from gpushare_operator.app import App
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.programs import Program, Programs
from gpushare_operator.main import installed, main, parser, renamed, serve
from gpushare_operator.process.health import StalledError
from gpushare_operator.process.leadership import FEWEST_LEASE_SECONDS, Leadership, LeaseTimes
from gpushare_operator.process.login import login

CARDS = {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]}
SECONDS = 60.0


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_node("gpu-1")
    made.add_node("cp", control_plane=True)
    return made


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(cluster: Cluster) -> Server:
    return Server(cluster.api)


@asynccontextmanager
async def running(
    server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> AsyncIterator[None]:
    """The operator, as ``main`` starts it."""
    stop = asyncio.Event()
    async with serving(server, folder) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        task = asyncio.create_task(serve(await made(kubeconfig), options(port), stop=stop))
        try:
            yield
        finally:
            stop.set()
            server.end_watches(with_error=False)
            await asyncio.wait_for(task, SECONDS)


async def made(kubeconfig: Path, name: str = "one") -> App:
    """An operator of that name, as ``main`` makes it."""
    credentials = await login(kubeconfig)
    leadership = Leadership.of(credentials, NAMESPACE, identity=name, times=LeaseTimes(FEWEST_LEASE_SECONDS))
    installation = Installation(namespace=NAMESPACE, image="gpushare:test")
    return App(installation, credentials, leadership, kubeconfig=kubeconfig)


def options(port: int) -> argparse.Namespace:
    return parser().parse_args(["--health-port", str(port), "--namespace", NAMESPACE])


def idle() -> App:
    """One that does not run."""
    nowhere = Credentials("https://nowhere", system_tls, str)
    return App(Installation(image="x"), nowhere, Leadership.of(nowhere, NAMESPACE, identity="idle"))


async def until(cluster: Cluster, is_reached: Callable[[], bool], what: str) -> None:
    """Lets the cluster react to the operator until ``is_reached``."""
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not is_reached():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"{what}: not so after {SECONDS:g} s; {cluster.traces()}")
        for step in cluster.steps():
            step()
        await asyncio.sleep(0.02)


def is_ready(cluster: Cluster, name: str = "default") -> bool:
    status = cluster.api.of(paths.POLICIES).get(name, {}).get("status", {})
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", ())
    )


async def test_a_policy_comes_and_goes_and_kopf_writes_nothing(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    async with running(server, tmp_path, monkeypatch, unused_port):
        cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        metadata = cluster.api.of(paths.POLICIES)["default"]["metadata"]
        assert metadata["finalizers"] == ["gpushare.io/restore"]
        assert metadata.get("annotations", {}).keys() <= {SERVED_ANNOTATION}
        cluster.delete_policy("default")
        await until(cluster, lambda: not cluster.api.of(paths.POLICIES), "the policy is gone")
    assert not any(cluster.traces().values())
    assert server.foreign == []


async def test_it_starts_before_the_api_server_works(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    server.failures = 3
    cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
    async with running(server, tmp_path, monkeypatch, unused_port):
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")


async def test_what_vanished_while_nobody_watched_is_noticed(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    cluster.add_node("gpu-2")
    cluster.add_policy("default", {"names": ["gpu-1", "gpu-2"], "devices": CARDS})
    async with running(server, tmp_path, monkeypatch, unused_port):
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        del cluster.api.of(paths.NODES)["gpu-2"]
        server.end_watches(with_error=True)
        await until(
            cluster, lambda: "gpu-2" not in cluster.api.of(paths.SHARE_NODES), "the vanished node is released"
        )


async def test_the_probe_tells_whether_the_queue_lives(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
    async with running(server, tmp_path, monkeypatch, unused_port):
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"http://127.0.0.1:{unused_port}/healthz")
            assert answer.status == 200
            assert 0 <= (await answer.json())["queue"] < 60


async def test_prometheus_reads_policies_and_the_operators_work(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
    async with running(server, tmp_path, monkeypatch, unused_port):
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        lines = await read_metrics(unused_port)
        deadline = asyncio.get_running_loop().time() + SECONDS
        while 'gpushare_policy_condition{policy="default",type="Ready"} 1.0' not in lines:
            assert asyncio.get_running_loop().time() < deadline, "Ready is not shown"
            await asyncio.sleep(0.05)  # the watch shows the operator what it has just written
            lines = await read_metrics(unused_port)
    assert 'gpushare_policy_nodes{policy="default",state="ready"} 1.0' in lines
    assert 'gpushare_operator_reconciles_total{result="Done",work="resync"} 0.0' in lines
    done = [
        line for line in lines if line.startswith("gpushare_operator_reconciles_total") and "policy" in line
    ]
    assert any('result="Done"' in line and not line.endswith(" 0.0") for line in done)


async def read_metrics(port: int) -> list[str]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        assert answer.status == 200
        return (await answer.text()).splitlines()


KOPF_WAITS = 5.0
"""Seconds, for tasks that do not end with it."""


async def test_a_signal_ends_the_process_well(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    wait, left = aiotasks.wait, list[Any]()

    async def patient(tasks: Any, *, timeout: float | None = None, **more: Any) -> Any:
        if timeout != KOPF_WAITS:
            return await wait(tasks, timeout=timeout, **more)
        ended, pending = await wait(tasks, timeout=SECONDS, **more)
        left.append(pending)
        return ended, pending

    monkeypatch.setattr(aiotasks, "wait", patient)
    cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
    async with serving(server, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        task = asyncio.create_task(serve(await made(kubeconfig), options(unused_port)))
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        assert await read_metrics(unused_port)
        os.kill(os.getpid(), signal.SIGTERM)
        server.end_watches(with_error=False)
        assert await asyncio.wait_for(task, 2 * SECONDS) == 0
        assert left == [set()], "nothing is left that kopf has to wait for"
        assert "holderIdentity" not in server.lease["spec"], "the next one need not wait"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", unused_port)) != 0


async def test_a_second_one_stands_by_ready_until_the_first_one_ends(
    cluster: Cluster, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> None:
    second = asyncio.Event()
    async with serving(server, tmp_path) as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        first = await made(kubeconfig)
        async with first.leadership.client:
            await first.leadership.win()
            task = asyncio.create_task(
                serve(await made(kubeconfig, "two"), options(unused_port), stop=second)
            )
            await answers(unused_port, "/readyz", "standing by: the operator one is at work")
            await answers(unused_port, "/healthz", '{"queue": 0.0}')
            assert "gpushare_operator_at_work 0.0" in await read_metrics(unused_port)
            cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
            assert cluster.api.writes == []
            await first.leadership.give_up()
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        await answers(unused_port, "/readyz", '{"ready": "at work"}')
        assert "gpushare_operator_at_work 1.0" in await read_metrics(unused_port)
        assert server.lease["spec"]["holderIdentity"] == "two"
        server.lease["spec"]["holderIdentity"] = "three"
        server.lease["metadata"]["resourceVersion"] = "1000"
        assert await asyncio.wait_for(task, SECONDS) == 1, "it ends, and is started again to stand by"


async def answers(port: int, path: str, text: str) -> None:
    """Waits until ``path`` is answered with 200 and ``text``."""
    deadline, got = asyncio.get_running_loop().time() + SECONDS, ""
    async with aiohttp.ClientSession() as session:
        while not got.startswith("200 ") or text not in got:
            with suppress(aiohttp.ClientConnectorError):
                answer = await session.get(f"http://127.0.0.1:{port}{path}")
                got = f"{answer.status} {await answer.text()}"
            assert asyncio.get_running_loop().time() < deadline, f"{path}: {text!r} was not answered: {got}"
            await asyncio.sleep(0.02)


async def test_a_health_port_that_is_taken_is_said(unused_port: int) -> None:
    app = idle()
    async with app.health_server(unused_port, host="127.0.0.1"):
        with pytest.raises(CannotServeError, match=rf"port {unused_port}: .* choose another --health-port"):
            async with app.health_server(unused_port, host="127.0.0.1"):
                pass


async def test_a_queue_that_stands_still_fails_liveness(unused_port: int) -> None:
    async with idle().health_server(unused_port, host="127.0.0.1"), aiohttp.ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{unused_port}/healthz")
        assert answer.status == 503
        assert await answer.json() == {"error": "the queue has stopped"}
        assert (await session.get(f"http://127.0.0.1:{unused_port}/readyz")).status == 503


async def test_one_that_could_not_take_over_is_not_ready_and_says_why() -> None:
    app = idle()
    app.leadership.waits_for = "cannot read the Lease gpushare-operator: 403 Forbidden"
    with pytest.raises(StalledError, match="cannot read the Lease gpushare-operator: 403"):
        app.readiness()
    assert app.probe() == 0.0, "to start it anew would change nothing"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        pytest.param(
            "[::1]", marks=pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
        ),
    ],
)
async def test_the_kubelet_may_ask_at_an_address_of_either_family(unused_port: int, host: str) -> None:
    async with idle().health_server(unused_port), aiohttp.ClientSession() as session:
        assert (await session.get(f"http://{host}:{unused_port}/readyz")).status == 503


async def test_a_queue_that_does_not_run_fails_the_probe() -> None:
    with pytest.raises(StalledError, match="has stopped"):
        idle().probe()


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("gpushare-operator 0.")


async def test_the_image_and_how_it_is_pulled_are_those_of_the_own_deployment_once_it_can_be_read(
    cluster: Cluster, server: Server, tmp_path: Path
) -> None:
    containers = [
        {"name": "sidecar", "image": "theirs"},
        {"name": "operator", "image": "registry/gpushare:1", "imagePullPolicy": "Always"},
    ]
    pod = {"containers": containers, "imagePullSecrets": [{"name": "registry"}]}
    cluster.api.put(
        paths.deployments(NAMESPACE),
        {"metadata": {"name": "gpushare-operator"}, "spec": {"template": {"spec": pod}}},
    )
    server.failures = 1
    options = parser().parse_args(
        ["--namespace", NAMESPACE, "--programs", '{"plugin": {"priorityClassName": "p"}}']
    )
    async with serving(server, tmp_path) as kubeconfig:
        found = await asyncio.wait_for(installed(await login(kubeconfig), options), SECONDS)
    assert found == Installation(
        namespace=NAMESPACE,
        image="registry/gpushare:1",
        pull_policy="Always",
        pull_secrets=("registry",),
        programs=Programs(plugin=Program(priorityClassName="p")),
    )


async def test_an_image_that_is_named_is_taken_as_it_is() -> None:
    nowhere = Credentials("https://nowhere", system_tls, str)
    assert await installed(nowhere, parser().parse_args(["--image", "mine"])) == Installation(image="mine")


def test_under_another_name_it_does_not_start() -> None:
    assert renamed({"SERVICE_ACCOUNT": "gpushare-operator"}) == ""
    assert renamed({}) == ""
    assert "namePrefix and nameSuffix of kustomize do not work" in renamed(
        {"SERVICE_ACCOUNT": "x-gpushare-operator"}
    )
