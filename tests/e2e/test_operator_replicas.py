"""Several operators: one is at work, whatever becomes of the others, and a write of a former one never comes
after one of its successor."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest
from tests.e2e.api_proxy import OwnProxy, api_proxy
from tests.e2e.observe import PATIENCE, Json, get, watch_until
from tests.e2e.product import SYSTEM, Product, policy

from gpushare_core.kube.paths import lease_path, leases
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

LEASE = "gpushare-operator"
LEASE_SECONDS = 18
"""Less than the default; enough for an operator on a busy machine, which renews it every three seconds."""
PODS = f"/api/v1/namespaces/{SYSTEM}/pods"


@dataclass(frozen=True)
class Operator:
    """A process of this machine that reaches the API server through a proxy of its own."""

    name: str
    process: "subprocess.Popen[bytes]"
    proxy: OwnProxy
    log: Path

    def await_end(self) -> int:
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end: {self.log.read_text()[-3000:]}") from None

    def await_standby(self) -> None:
        wait_until(
            f"{self.name} stands by",
            lambda: "standing by" in self.log.read_text(),
            explain=lambda: self.log.read_text()[-3000:],
        )

    def writes_since(self, moment: float) -> list[str]:
        return [f"{write.method} {write.path}" for write in self.proxy.writes if write.answered > moment]

    def began(self) -> float:
        """When it got the Lease."""
        wait_until(f"{self.name} has the Lease", lambda: self._lease_writes())
        return self._lease_writes()[0]

    def _lease_writes(self) -> list[float]:
        return [write.answered for write in self.proxy.writes if write.path.endswith(f"/{LEASE}")]


@contextmanager
def operator(cluster: LocalCluster, folder: Path, name: str) -> Iterator[Operator]:
    with api_proxy(cluster.kubeconfig) as proxy, (folder / f"{name}.log").open("wb") as log:
        command = [str(Path(sys.executable).parent / "gpushare-operator"), "--namespace", SYSTEM]
        command += ["--kubeconfig", str(proxy.kubeconfig(folder)), "--health-port", str(unused_port())]
        command += ["--lease-seconds", str(LEASE_SECONDS)]
        process = subprocess.Popen(command, env={**os.environ, "POD_ID": name}, stderr=log, stdout=log)
        try:
            yield Operator(name, process, proxy, folder / f"{name}.log")
        finally:
            process.kill()
            process.wait()


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scale(cluster: LocalCluster, replicas: int) -> None:
    cluster.kubectl("scale", "deployment/gpushare-operator", "-n", SYSTEM, f"--replicas={replicas}")
    watch_until(
        cluster,
        PODS,
        lambda pods: sum(is_operator(pod) for pod in pods) == replicas,
        what=f"{replicas} pods of the operator",
    )
    if replicas:
        cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")


def is_operator(pod: Json) -> bool:
    return bool(pod["metadata"]["name"].startswith("gpushare-operator"))


def holder_of(lease: Json) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def await_holder(cluster: LocalCluster, is_meant: Callable[[str], bool], *, what: str) -> str:
    """Wait until an operator that ``is_meant`` has the Lease, and return its name."""
    found = [""]

    def holds(all_leases: Sequence[Json]) -> bool:
        found[:] = [holder_of(lease) for lease in all_leases if lease["metadata"]["name"] == LEASE]
        return is_meant(found[0])

    watch_until(cluster, leases(SYSTEM), holds, what=what, describe=lambda _: found)
    return found[0]


def await_at_work(cluster: LocalCluster, name: str) -> None:
    await_holder(cluster, lambda holder: holder == name, what=f"operator {name} at work")


def lease_seconds(cluster: LocalCluster) -> int:
    """After how long another operator takes over."""
    return int(get(cluster, lease_path(SYSTEM, LEASE))["spec"]["leaseDurationSeconds"])


def is_pod(holder: str) -> bool:
    return holder.startswith("gpushare-operator-")


def ask(product: Product, level: str) -> None:
    """Change what an operator at work has to write down."""
    product.apply({**POLICY, "spec": {**POLICY["spec"], "plugin": {"logLevel": level}}})


def is_written(product: Product, level: str) -> None:
    product.share_node("gpu-1", lambda node: node["spec"].get("logLevel") == level, what=f"level {level}")


POLICY = policy("default", nodes=["gpu-1"])


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Iterator[None]:
    with product.in_force(POLICY):
        yield


@pytest.fixture
def outside(cluster: LocalCluster) -> Iterator[None]:
    """No operator runs in the cluster."""
    try:
        scale(cluster, 0)
        yield
    finally:
        scale(cluster, 1)


@pytest.mark.usefixtures("outside")
def test_one_paused_one_killed_one_cut_off(cluster: LocalCluster, product: Product, tmp_path: Path) -> None:
    with ExitStack() as stack:

        def start(name: str) -> Operator:
            return stack.enter_context(operator(cluster, tmp_path, name))

        one = start("one")
        await_at_work(cluster, "one")
        assert lease_seconds(cluster) == LEASE_SECONDS
        two = start("two")
        two.await_standby()
        ask(product, "debug")
        is_written(product, "debug")
        assert two.proxy.writes == []

        paused = monotonic()
        one.process.send_signal(signal.SIGSTOP)
        ask(product, "info")
        await_at_work(cluster, "two")
        print(f"paused: after {two.began() - paused:.1f} s the next one was at work")
        is_written(product, "info")
        one.process.send_signal(signal.SIGCONT)
        ask(product, "warning")  # both are told of it
        is_written(product, "warning")
        assert one.await_end() == 1, one.log.read_text()[-3000:]
        assert one.writes_since(two.began()) == []
        assert "the operator two is at work" in one.log.read_text()

        three = start("three")
        three.await_standby()
        killed = monotonic()
        two.process.kill()
        await_at_work(cluster, "three")
        print(f"killed: after {three.began() - killed:.1f} s the next one was at work")
        ask(product, "error")
        is_written(product, "error")

        four = start("four")
        four.await_standby()
        cut_off = monotonic()
        three.proxy.cut()
        ask(product, "info")
        await_at_work(cluster, "four")
        print(f"cut off: after {four.began() - cut_off:.1f} s the next one was at work")
        is_written(product, "info")
        assert three.await_end() == 1
        assert three.writes_since(four.began()) == []

        ended = monotonic()
        five = start("five")
        five.await_standby()
        four.process.terminate()
        await_at_work(cluster, "five")
        print(f"ended: after {five.began() - ended:.1f} s with its start the next one was at work")
        five.process.terminate()
        assert (four.await_end(), five.await_end()) == (0, 0)


def test_a_second_replica_is_ready_and_takes_over(cluster: LocalCluster, product: Product) -> None:
    scale(cluster, 2)
    first = await_holder(cluster, is_pod, what="a pod at work")
    cluster.kubectl("delete", "pod", first, "-n", SYSTEM, "--wait=false")
    await_holder(cluster, lambda name: is_pod(name) and name != first, what="the other pod at work")
    ask(product, "debug")
    is_written(product, "debug")
    scale(cluster, 1)
    product.await_ready("default")
