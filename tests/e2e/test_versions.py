"""What answers is what was asked for. `make matrix` writes down the versions that are recorded here."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.observe import NODES, Json, get

from gpushare_localcluster.build.container_runtime import ContainerRuntime, ensure_runtime
from gpushare_localcluster.build.minors import chosen_minor
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.config import ClusterConfig, Containerd

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

Record = Callable[[str, object], None]


@pytest.fixture
def runtime() -> ContainerRuntime:
    return ensure_runtime(report=to_stderr)


@pytest.fixture
def node(runtime: ContainerRuntime, tmp_path: Path) -> Iterator[Json]:
    """The status of a control-plane node whose kube-scheduler is a container of containerd."""
    nodes = ClusterConfig.of_size(workers=0).nodes
    with LocalCluster(tmp_path) as running:
        running.start(ClusterConfig(nodes=nodes, containerd=Containerd(runtime=runtime)))
        running.wait_ready()
        (ready,) = get(running, NODES)["items"]
        yield ready["status"]


def test_server_and_kubelets_are_of_the_version_that_was_asked_for(
    cluster: LocalCluster, record_property: Record
) -> None:
    server = json.loads(cluster.kubectl("get", "--raw", "/version"))["gitVersion"]
    record_property("Kubernetes", server.removeprefix("v"))
    kubelets = {item["status"]["nodeInfo"]["kubeletVersion"] for item in get(cluster, NODES)["items"]}
    assert {server, *kubelets} == {chosen_minor().version}


def test_containers_are_run_by_containerd_and_runc(
    node: Json, runtime: ContainerRuntime, record_property: Record
) -> None:
    name, _, version = node["nodeInfo"]["containerRuntimeVersion"].partition("://")
    record_property(name, version.partition("+")[0])
    record_property("runc", runc_version(runtime.runc / "runc"))
    record_property("cgroups", cgroup_version())
    record_property("kernel", node["nodeInfo"]["kernelVersion"])
    assert name == "containerd"


def runc_version(runc: Path) -> str:
    done = subprocess.run([runc, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0].removeprefix("runc version ")


def cgroup_version() -> str:
    """Returns the version of the hierarchy that kubelets and runtimes find where they look."""
    return "2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "1"
