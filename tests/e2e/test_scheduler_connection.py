"""What happens to the scheduler's connection while one policy lives: another port, another image."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.control_plane import CONTROL_PLANE
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.kube import paths
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("connected")]

OTHER_PORT = 12000


@pytest.fixture(scope="module")
def connected(product: Product) -> Iterator[None]:
    """A policy on one node."""
    with product.in_force(policy("default", nodes=["gpu-1"])):
        yield


def test_the_mark_of_a_control_plane_is_one_that_no_kubelet_may_set(cluster: LocalCluster) -> None:
    node = get(cluster, f"{paths.NODES}/{CONTROL_PLANE}")
    ours = [key for key in node["metadata"]["labels"] if "gpushare" in key]
    assert ours == [SCHEDULER_LABEL]


def test_another_port_is_taken_over_and_the_former_one_left(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    moved = policy("default", nodes=["gpu-1"])
    moved["spec"]["scheduler"] = {"extenderPort": OTHER_PORT}
    product.apply(moved)
    product.await_ready("default")

    def listens() -> list[str]:
        extender = get(cluster, f"{paths.daemon_sets(SYSTEM)}/gpushare-extender")
        (container,) = extender["spec"]["template"]["spec"]["containers"]
        given = container["args"]
        return [given[place + 1] for place, option in enumerate(given) if option == "--listen"]

    wait_until("only the new port is left", lambda: listens() == [f"127.0.0.1:{OTHER_PORT}"])
    product.await_ready("default")
    create(cluster, namespace, [pod("shares", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="a pod that shares a card runs",
    )


def test_all_programs_follow_kubectl_set_image(cluster: LocalCluster, product: Product) -> None:
    """The operator reads the Deployment's image, and the admission policy, too."""
    set_image(cluster, "gpushare:0.2.0")
    set_image(cluster, "gpushare:0.1.0")
    product.await_ready("default")


def set_image(cluster: LocalCluster, image: str) -> None:
    cluster.kubectl("set", "image", "deployment/gpushare-operator", f"operator={image}", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")
    watch_until(
        cluster,
        paths.daemon_sets(SYSTEM),
        lambda daemon_sets: {image_of(daemon_set) for daemon_set in daemon_sets} == {image},
        what=f"everything runs {image}",
        describe=lambda daemon_sets: [image_of(daemon_set) for daemon_set in daemon_sets],
    )


def image_of(daemon_set: Any) -> str:
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    return str(container["image"])
