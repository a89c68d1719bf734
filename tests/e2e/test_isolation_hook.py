"""Isolation by the hook in real containers: containerd, runc and a kubelet, and a driver that keeps the truth."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cuda_node import (
    CARDS,
    CONTEXT,
    GLIBC,
    MUSL,
    STATIC,
    CudaNode,
    Images,
    Users,
    user_container,
    user_pod,
)
from tests.e2e.fixtures import own_namespace
from tests.e2e.image_build import PACKAGES, build_image
from tests.e2e.observe import Json, condition
from tests.e2e.plugin_processes import plugin_processes
from tests.e2e.product import Product, policy
from tests.e2e.workloads import SLICE
from tests.fakes.cuda_driver import GIB, MIB

from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.config import ClusterConfig, Containerd
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
FILES = "/var/lib/gpushare/isolation"
REFUSED = "refused 2"
"""CUDA_ERROR_OUT_OF_MEMORY."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One control plane and one worker whose containers are real, with the product's image and users'."""
    folder = tmp_path_factory.mktemp("images")
    build_image(folder / "gpushare.tar")
    images = [folder / "gpushare.tar", *Images(folder).write()]
    packages = ensure_packages(PACKAGES, report=to_stderr)
    nodes = ClusterConfig.of_size(workers=1).nodes
    with LocalCluster(tmp_path_factory.mktemp("real")) as running:
        running.start(ClusterConfig(nodes=nodes, containerd=Containerd(packages=packages, images=images)))
        running.wait_ready(240)
        yield running


@pytest.fixture(scope="module")
def product(cluster: LocalCluster) -> Product:
    installed = Product(cluster)
    installed.install()
    return installed


@pytest.fixture(scope="module")
def node(cluster: LocalCluster) -> CudaNode:
    prepared = CudaNode(cluster, NODE)
    prepared.install()
    prepared.write_inventory()
    return prepared


@pytest.fixture(scope="module", autouse=True)
def hooked(product: Product, node: CudaNode) -> Json:
    """The policy of most tests: two cards, each in slices or by memory."""
    product.apply(isolating("Hook"))
    return product.await_ready("default")


def isolating(kind: str) -> Json:
    rule: dict[str, Any] = {"mode": "Mixed", "slicesPerCard": 2, "devices": {"source": "Inventory"}}
    isolation = {"memory": kind, "contextMemory": f"{CONTEXT // MIB}Mi"}
    return policy("default", nodes=[NODE], **rule, isolation=isolation)


@pytest.fixture
def users(cluster: LocalCluster, node: CudaNode) -> Iterator[Users]:
    node.driver.forget()
    with own_namespace(cluster) as name:
        yield Users(cluster, name)


def test_a_process_is_refused_at_the_share_of_its_container(users: Users, node: CudaNode) -> None:
    said = users.run(user_pod("user", user_container("0=3000", "0=1000", "0=500", units=4)))
    assert said.splitlines() == ["0=3000 taken", f"0=1000 {REFUSED}", "0=500 taken", "0: total 4096, free 84"]
    assert node.driver.highest() == 3500 * MIB + CONTEXT
