"""A program that no library is loaded into takes more than its share: it is measured, told, evicted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cuda_node import (
    CARD_MEMORY,
    CARDS,
    CONTEXT,
    FOLDER,
    STATE,
    STATIC,
    CudaNode,
    Images,
    Users,
    user_container,
    user_pod,
)
from tests.e2e.fixtures import own_namespace
from tests.e2e.image_build import build_image
from tests.e2e.observe import PODS, Json, condition, watch_until
from tests.e2e.product import Product, policy
from tests.e2e.real_containers import processes_of, real_cluster
from tests.e2e.user_images import add_links
from tests.fakes.cuda_driver import GIB, MIB
from tests.fakes.nvml_driver import StubDriver

from gpushare_core.kube.paths import events
from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
EVICTED_WITHIN = 300.0
"""Seconds: the grace, a renewal of the plugin's Lease, and a look of the operator at it."""
LIBRARY = "libnvidia-ml.so.1"
MANAGEMENT = "/var/lib/kubelet/device-plugins/driver"
"""On the node, and seen by the plugin: where its image finds what NVIDIA's container runtime would mount."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("images")
    build_image(folder / "built.tar")
    add_links(
        folder / "built.tar", folder / "gpushare.tar", {f"/usr/lib/{LIBRARY}": f"{MANAGEMENT}/{LIBRARY}"}
    )
    images = [folder / "gpushare.tar", *Images(folder).write()]
    with real_cluster(tmp_path_factory.mktemp("real"), images) as running:
        yield running


@pytest.fixture(scope="module")
def node(cluster: LocalCluster) -> CudaNode:
    prepared = CudaNode(cluster, NODE)
    prepared.install()
    return prepared


@pytest.fixture(scope="module")
def management(node: CudaNode) -> StubDriver:
    """NVIDIA's management library of the same cards."""
    folder = node.cluster.node_path(NODE, MANAGEMENT)
    folder.mkdir()
    driver = StubDriver(folder)
    for uuid in CARDS:
        driver.add_card(uuid, gib=CARD_MEMORY // GIB)
    driver.install()
    return driver


@pytest.fixture(scope="module")
def product(node: CudaNode, management: StubDriver) -> Product:
    del management
    installed = Product(node.cluster)
    installed.install()
    installed.apply(measuring(onExcess="Report"))
    installed.await_ready("default")
    return installed


def measuring(**isolation: Any) -> Json:
    hook = {"memory": "Hook", "contextMemory": f"{CONTEXT // MIB}Mi", **isolation}
    body = policy("default", nodes=[NODE], devices={"source": "NVML"}, isolation=hook)
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers", "intervalSeconds": 10}}
    return body


@pytest.fixture
def users(product: Product) -> Iterator[Users]:
    with own_namespace(product.cluster) as name:
        yield Users(product.cluster, name)


def static_pod(name: str, *requests: str) -> Json:
    """The driver's container runtime would mount what a pod here mounts itself."""
    volume = {"name": "driver", "hostPath": {"path": FOLDER}}
    container = user_container(*requests, units=4, image=STATIC)
    container["volumeMounts"] = [{"name": "driver", "mountPath": STATE}]
    container["env"].append({"name": "CUDA_STUB_FOLDER", "value": STATE})
    return user_pod(name, container, volumes=[volume])


def pid_on_node(users: Users, name: str) -> int:
    (container,) = users.status(name)["containerStatuses"]
    status = Path(f"/proc/{processes_of(container)[0]}/status").read_text()
    (levels,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
    return int(levels[-2])


def test_a_static_program_gets_through_and_is_told_and_evicted(
    users: Users, product: Product, node: CudaNode, management: StubDriver
) -> None:
    said = users.run(static_pod("user", "0=6000"))
    assert said.startswith("0=6000 taken")
    assert node.driver.highest() == 6000 * MIB + CONTEXT
    management.run(pid_on_node(users, "user"), node.driver.used())
    exceeded = product.share_node(
        NODE,
        lambda it: condition(it, "MemoryExceeded").get("status") == "True",
        what="more than was asked for is told",
    )
    assert f"{users.namespace}/user" in condition(exceeded, "MemoryExceeded")["message"]
    assert users.status("user")["phase"] == "Running"
    product.apply(measuring(onExcess="Evict", graceSeconds=5))
    watch_until(
        product.cluster,
        PODS.format(namespace=users.namespace),
        lambda pods: not pods,
        what="the pod is evicted",
        seconds=EVICTED_WITHIN,
        describe=lambda pods: [pod.get("status") for pod in pods],
    )
    told = until_told(product.cluster, users.namespace, "EvictedForMemory")
    print(told)
    assert all("6512Mi" in note for note in told)


def until_told(cluster: LocalCluster, namespace: str, reason: str) -> list[str]:
    """Waits for an Event of a reason: it may come after the pod's end. Returns what all of them say."""

    def notes(found: Any) -> list[str]:
        return [str(event["note"]) for event in found if event["reason"] == reason]

    seen = watch_until(
        cluster,
        events(namespace),
        lambda found: bool(notes(found)),
        what=f"an Event {reason}",
        describe=lambda found: [event["reason"] for event in found],
    )
    return notes(seen)
