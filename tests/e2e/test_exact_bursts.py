"""Sixteen pods of half a card at once on eight cards: two on each, on one node and on two."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import is_active, is_running, summary
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("eight_cards")]

HOSTNAME = "kubernetes.io/hostname"
LAYOUTS = [pytest.param(["gpu-1"], id="one node"), pytest.param(["gpu-2", "gpu-3"], id="two nodes")]
PODS_AT_ONCE = 16
HALF = 8
TIMES = 3


@pytest.fixture(scope="module")
def eight_cards(product: Product) -> Iterator[None]:
    """Eight cards of 16 units on one node, and on two others together."""
    body = policy("default", nodes=["gpu-1"], cards=8)
    body["spec"]["nodes"] += policy("default", nodes=["gpu-2", "gpu-3"], cards=4)["spec"]["nodes"]
    with product.in_force(body):
        yield


def half_card(name: str, nodes: list[str]) -> Json:
    body = pod(name, {"main": HALF})
    requirement = {"key": HOSTNAME, "operator": "In", "values": nodes}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    body["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return body


def burst(cluster: LocalCluster, namespace: str, nodes: list[str]) -> None:
    create(cluster, namespace, [half_card(f"half-{number}", nodes) for number in range(PODS_AT_ONCE)])


def pods_on_cards(cluster: LocalCluster, namespace: str) -> Counter[str]:
    """Waits until all run."""
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: sum(is_active(pod) and is_running(pod) for pod in seen) == PODS_AT_ONCE,
        what=f"{PODS_AT_ONCE} pods run",
        describe=summary,
    )
    allocations = (json.loads(pod["metadata"]["annotations"]["gpushare.io/allocation"]) for pod in pods)
    return Counter(card for allocation in allocations for card in allocation["cards"])


def delete_pods(cluster: LocalCluster, namespace: str) -> None:
    cluster.kubectl("delete", "pods", "--all", "-n", namespace, "--timeout=240s")


@pytest.mark.parametrize("nodes", LAYOUTS)
@pytest.mark.usefixtures("books_agree")
def test_two_pods_on_each_card(cluster: LocalCluster, namespace: str, nodes: list[str]) -> None:
    for _ in range(TIMES):
        burst(cluster, namespace, nodes)
        cards = pods_on_cards(cluster, namespace)
        assert (set(cards.values()), len(cards)) == ({2}, 8)
        delete_pods(cluster, namespace)


@pytest.mark.parametrize("nodes", LAYOUTS)
@pytest.mark.usefixtures("books_agree")
def test_two_pods_on_each_card_with_the_scheduler_killed_in_the_middle(
    cluster: LocalCluster, namespace: str, nodes: list[str]
) -> None:
    burst(cluster, namespace, nodes)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["spec"].get("nodeName") for pod in pods),
        what="the first pod is bound",
    )
    kill_scheduler(cluster)
    cards = pods_on_cards(cluster, namespace)
    assert (set(cards.values()), len(cards)) == ({2}, 8)


def kill_scheduler(cluster: LocalCluster) -> None:
    """SIGKILL, as the kernel's OOM killer would."""
    record = next(
        container
        for container in cluster.containers()
        if container.pod.startswith("kube-scheduler") and container.state == "running"
    )
    cluster.kill_container(namespace=record.namespace, pod=record.pod, container="kube-scheduler")
