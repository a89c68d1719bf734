"""Isolation by the driver in real containers: a runtime adds the toolkit's hook, the hook sets the limit in a
library that stands for the driver's, and the plugin reads it back from the containers' cgroups.

A machine whose cgroups are of version 1 has those of version 2 in a folder besides, without controllers.
There the plugin has to refuse the node's cgroups; then it is shown that folder instead of them.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.fixtures import own_namespace
from tests.e2e.image_build import IMAGE, build_image
from tests.e2e.observe import PODS, Json, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.real_containers import kill_container, real_cluster
from tests.e2e.user_images import add_links
from tests.e2e.workloads import MEMORY, create
from tests.fakes import toolkit_hook, toolkit_runtime
from tests.fakes.nvml_driver import GIB, StubDriver

from gpushare_core.kube.paths import events
from gpushare_localcluster.build.container_runtime import ContainerRuntime, ensure_runtime
from gpushare_localcluster.cluster import LocalCluster, to_stderr

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
PLUGINS = "daemonset/gpushare-plugin-default"
LIBRARY = "libnvidia-ml.so.1"
DRIVER = "/var/lib/kubelet/device-plugins/driver"
"""On the node, and seen by the plugin: where its image finds what NVIDIA's container runtime would mount."""
CGROUPS = Path("/sys/fs/cgroup")
UNIFIED = next(
    (path for path in (CGROUPS, CGROUPS / "unified") if (path / "cgroup.controllers").exists()), CGROUPS
)
"""Where this machine has cgroups of version 2."""
HOST = "/run/localcluster/image"
"""Where a node finds the files of its host."""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ContainerRuntime:
    """With a runc that adds hooks."""
    plain, folder = ensure_runtime(report=to_stderr), tmp_path_factory.mktemp("with-toolkit")
    shutil.copy(plain.runc / "runc", folder / "runc.real")
    shutil.copy(toolkit_hook.__file__, folder / "toolkit_hook.py")
    program = Path(toolkit_runtime.__file__).read_text()
    (folder / "runc").write_text(f"#!{HOST}{Path(sys.executable).resolve()}\n{program}")
    (folder / "runc").chmod(0o755)
    return replace(plain, runc=folder)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, runtime: ContainerRuntime) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("images")
    build_image(folder / "built.tar")
    add_links(folder / "built.tar", folder / "gpushare.tar", {f"/usr/lib/{LIBRARY}": f"{DRIVER}/{LIBRARY}"})
    images = [folder / "gpushare.tar"]
    with real_cluster(tmp_path_factory.mktemp("real"), images, runtime=runtime) as running:
        yield running


@pytest.fixture(scope="module")
def driver(cluster: LocalCluster) -> StubDriver:
    folder = cluster.node_path(NODE, DRIVER)
    folder.mkdir()
    driver = StubDriver(folder)
    driver.add_card("GPU-a")
    driver.add_card("GPU-b")
    driver.install()
    return driver


class Toolkit:
    """NVIDIA's, on the node."""

    def __init__(self, runtime: ContainerRuntime) -> None:
        self._file = runtime.runc / "toolkit.json"

    def install(self) -> None:
        self._file.write_text(json.dumps({"library": f"{DRIVER}/{LIBRARY}", "cgroups": str(UNIFIED)}))

    def downgrade(self) -> None:
        """To a version without the hook."""
        self._file.unlink(missing_ok=True)


@pytest.fixture
def toolkit(runtime: ContainerRuntime) -> Toolkit:
    toolkit = Toolkit(runtime)
    toolkit.install()
    return toolkit


def limiting() -> Json:
    """Containers are measured: the driver says what each of them uses."""
    body = policy("default", nodes=[NODE], devices={"source": "NVML"}, isolation={"memory": "Driver"})
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers", "intervalSeconds": 10}}
    return body


@pytest.fixture(scope="module")
def product(cluster: LocalCluster, driver: StubDriver) -> Product:
    del driver
    installed = Product(cluster)
    installed.install()
    installed.apply(limiting())
    if UNIFIED != CGROUPS:
        show_unified_cgroups(installed)
    isolation_ready(installed, "True", "Driver")
    return installed


def show_unified_cgroups(product: Product) -> None:
    """The operator would take it back, so it does not run meanwhile."""
    isolation_ready(product, "False", "CgroupsOfVersion1")
    product.cluster.kubectl("scale", "deployment/gpushare-operator", "-n", SYSTEM, "--replicas=0")
    watch_until(
        product.cluster,
        PODS.format(namespace=SYSTEM),
        lambda pods: not any("operator" in pod["metadata"]["name"] for pod in pods),
        what="the operator has ended",
    )
    volume = {"name": "cgroups", "hostPath": {"path": str(UNIFIED)}}
    patch = {"spec": {"template": {"spec": {"volumes": [volume]}}}}
    product.cluster.kubectl("patch", PLUGINS, "-n", SYSTEM, "--patch", json.dumps(patch))
    product.cluster.kubectl("rollout", "status", PLUGINS, "-n", SYSTEM, "--timeout=240s")


def isolation_ready(product: Product, status: str, reason: str) -> Json:
    def holds(share_node: Json) -> bool:
        found = condition(share_node, "IsolationReady")
        return (found.get("status"), found.get("reason")) == (status, reason)

    return product.share_node(NODE, holds, what=f"IsolationReady {status} {reason}")


@pytest.fixture
def namespace(product: Product) -> Iterator[str]:
    with own_namespace(product.cluster) as name:
        yield name


def sleeper(name: str, *, units: int = 4, environment: Sequence[Json] = ()) -> Json:
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", "import signal; signal.pause()"],
        "resources": {"limits": {MEMORY: str(units)}},
        "env": [*environment],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


def run(product: Product, namespace: str, body: Json) -> Json:
    """Returns the entry of its container in the pod's status once it runs."""
    name = body["metadata"]["name"]
    create(product.cluster, namespace, [body])
    pods = watch_until(
        product.cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
        describe=lambda pods: [pod.get("status") for pod in pods],
    )
    (pod,) = [pod for pod in pods if pod["metadata"]["name"] == name]
    entry: Json = pod["status"]["containerStatuses"][0]
    return entry


def in_force(product: Product, status: str, *words: str) -> str:
    """Waits for the condition, and returns its message."""

    def holds(share_node: Json) -> bool:
        found = condition(share_node, "IsolationInForce")
        return found.get("status") == status and all(word in found.get("message", "") for word in words)

    found = product.share_node(NODE, holds, what=f"IsolationInForce {status}: {words}")
    return str(condition(found, "IsolationInForce")["message"])


def unified_cgroup(entry: Json) -> Path:
    """Of a container, by its entry in the pod's status."""
    name = str(entry["containerID"]).rpartition("/")[2]
    return next(UNIFIED.glob(f"localcluster-*/**/{name}"))


@pytest.mark.usefixtures("toolkit")
def test_a_container_has_its_limit_before_it_starts_and_it_is_read_back(
    product: Product, namespace: str, driver: StubDriver
) -> None:
    entry = run(product, namespace, sleeper("user"))
    limits = (driver.folder / "limits").read_text().split()
    assert limits[-2:] == ["0", str(4 * GIB)]
    assert limits[-4] == str(unified_cgroup(entry).stat().st_ino)
    in_force(product, "True")


@pytest.mark.usefixtures("toolkit")
def test_what_the_driver_counts_for_a_container_is_its_measured_use(
    product: Product, namespace: str, driver: StubDriver
) -> None:
    entry = run(product, namespace, sleeper("user"))
    seen = CGROUPS / unified_cgroup(entry).relative_to(UNIFIED)  # as the plugin sees it
    driver.use_in(seen, 5 * GIB)
    exceeded = product.share_node(
        NODE,
        lambda it: condition(it, "MemoryExceeded").get("status") == "True",
        what="more than was asked for is told",
    )
    message = condition(exceeded, "MemoryExceeded")["message"]
    assert f"container main of pod {namespace}/user uses 5Gi" in message


@pytest.mark.usefixtures("toolkit")
def test_a_restarted_container_has_its_limit_again(product: Product, namespace: str) -> None:
    entry = run(product, namespace, sleeper("user"))
    kill_container(product.cluster, namespace, "user")
    watch_until(
        product.cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(
            is_running(pod) and pod["status"]["containerStatuses"][0]["containerID"] != entry["containerID"]
            for pod in pods
        ),
        what="the container runs again",
    )
    in_force(product, "True")


@pytest.mark.usefixtures("toolkit")
def test_a_variable_of_the_pods_own_is_found_and_named(product: Product, namespace: str) -> None:
    body = sleeper("user", environment=[{"name": "NVIDIA_GPU_MEMORY_LIMIT", "value": "16384"}])
    run(product, namespace, body)
    message = in_force(product, "False", f"{namespace}/user")
    assert "the driver holds it to 16Gi and not to 4Gi (does the pod set NVIDIA_GPU_MEMORY_LIMIT" in message
    product.cluster.kubectl("delete", "pod", "user", "-n", namespace)
    run(product, namespace, sleeper("other"))
    in_force(product, "True")


def test_an_older_toolkit_is_found(product: Product, namespace: str, toolkit: Toolkit) -> None:
    toolkit.downgrade()
    run(product, namespace, sleeper("user"))
    message = in_force(product, "False", f"{namespace}/user")
    assert "the driver has no limit for it, and not 4Gi (NVIDIA's container toolkit is older" in message
    watch_until(
        product.cluster,
        events(namespace),
        lambda seen: any(event["reason"] == "IsolationNotInForce" for event in seen),
        what="the pod is told",
        describe=lambda seen: [event["reason"] for event in seen],
    )


@pytest.mark.usefixtures("toolkit")
def test_a_container_whose_hook_fails_does_not_start(product: Product, namespace: str) -> None:
    body = sleeper("user", environment=[{"name": "NVIDIA_GPU_MEMORY_LIMIT", "value": "all"}])
    create(product.cluster, namespace, [body])
    watch_until(
        product.cluster,
        PODS.format(namespace=namespace),
        lambda pods: any("is no amount in MiB" in json.dumps(pod["status"]) for pod in pods),
        what="the hook's error in the pod's status",
        describe=lambda pods: [pod.get("status") for pod in pods],
    )
