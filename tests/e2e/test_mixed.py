"""Mode Mixed on a real kubelet: memory, slices and whole cards together, each card for one of them.

The published table of locks is played by ``test_modes_and_dialects``.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.fixtures import await_agreement
from tests.e2e.observe import NODES, PODS, SHARE_NODES, Json, condition, is_true, versions, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.workloads import CARD, MEMORY, SLICE, container, create, pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("mixed", "books_agree")]

NODE = "gpu-1"


@pytest.fixture(scope="module")
def mixed(product: Product) -> Iterator[None]:
    with product.in_force(mixed_policy()):
        yield


def mixed_policy() -> Json:
    return policy("default", nodes=[NODE], cards=4, memory="86Gi", mode="Mixed", slicesPerCard=2)


def await_offered(cluster: LocalCluster, *expected: int) -> None:
    """Wait until the node has so many cards, slices and units of memory, as capacity and as allocatable."""

    def shown(nodes: Any, field: str) -> tuple[int, ...]:
        (node,) = (node for node in nodes if node["metadata"]["name"] == NODE)
        return tuple(int(node["status"][field].get(name, 0)) for name in (CARD, SLICE, MEMORY))

    watch_until(
        cluster,
        NODES,
        lambda nodes: all(shown(nodes, field) == expected for field in ("capacity", "allocatable")),
        what=f"cards, slices and memory are {expected}",
        describe=lambda nodes: {field: shown(nodes, field) for field in ("capacity", "allocatable")},
    )


def run(cluster: LocalCluster, namespace: str, *bodies: Json) -> None:
    create(cluster, namespace, bodies)
    names = {body["metadata"]["name"] for body in bodies}
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: names <= {pod["metadata"]["name"] for pod in pods if is_running(pod)},
        what=f"{sorted(names)} run",
        describe=lambda pods: [pod["status"] for pod in pods],
    )


def asking(name: str, amount: int, resource: str) -> Json:
    return pod(name, {"main": amount}, resource=resource)


def two_containers(name: str, *containers: Json) -> Json:
    body = pod(name, {})
    body["spec"]["containers"] = list(containers)
    return body


def delete(cluster: LocalCluster, namespace: str, name: str) -> None:
    cluster.kubectl("delete", "pod", name, "-n", namespace, "--wait=true")


def test_of_pods_that_race_for_the_last_free_card_one_wins_and_the_others_follow(
    cluster: LocalCluster, namespace: str
) -> None:
    """A pod that is refused is tried again as soon as a card is free, and not lost."""
    run(cluster, namespace, asking("three", 3, CARD))
    await_offered(cluster, 4, 2, 86)
    racing = [asking("halves", 1, SLICE), asking("memory", 10, MEMORY), asking("whole", 1, CARD)]
    create(cluster, namespace, racing)
    waiting = {pod["metadata"]["name"] for pod in racing}
    while waiting:
        waiting -= winner(cluster, namespace, waiting)
        await_agreement(cluster, namespace)


def winner(cluster: LocalCluster, namespace: str, waiting: set[str]) -> set[str]:
    """Wait until one of these pods runs and the others say why they do not; then delete that one."""

    def running(pods: Any) -> set[str]:
        return {pod["metadata"]["name"] for pod in pods if is_running(pod)} & waiting

    def refused(pods: Any) -> set[str]:
        texts = {pod["metadata"]["name"]: condition(pod, "PodScheduled").get("message", "") for pod in pods}
        return {name for name in waiting if "nsufficient" in texts.get(name, "")}

    seen = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(running(pods)) == 1 and running(pods) | refused(pods) == waiting,
        what=f"one of {sorted(waiting)} runs and the others wait",
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    (won,) = running(seen)
    delete(cluster, namespace, won)
    return {won}


def test_a_pod_of_two_resources_gets_cards_of_each(cluster: LocalCluster, namespace: str) -> None:
    both = two_containers(
        "both", container("main", 10, resource=MEMORY), container("side", 2, resource=SLICE)
    )
    run(cluster, namespace, both)
    await_offered(cluster, 1, 6, 172)
    await_agreement(cluster, namespace)


def test_locks_outlive_the_kubelet_and_the_plugin(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """Nothing is written down for them: the kubelet knows what it has given out; it lists nobody at first."""
    run(cluster, namespace, asking("halves", 2, SLICE), asking("memory", 10, MEMORY))
    await_offered(cluster, 1, 6, 172)
    product.share_node(NODE, lambda node: in_use(node) == 12, what="all units are in use")
    with versions(cluster, SHARE_NODES, NODE) as seen:
        cluster.restart_kubelet(NODE)
        wait_until("the kubelet is away", lambda: not all(is_true(node, "Registered") for node in seen))
        product.share_node(NODE, lambda node: is_true(node, "Registered"), what="it is back")
        await_offered(cluster, 1, 6, 172)
        restart_plugin(cluster, product)
        await_offered(cluster, 1, 6, 172)
    assert {in_use(node) for node in seen} == {12}
    run(cluster, namespace, asking("whole", 1, CARD))
    await_offered(cluster, 1, 4, 86)


def in_use(share_node: Json) -> int:
    allocated: int = share_node["status"]["units"]["allocated"]
    return allocated


def restart_plugin(cluster: LocalCluster, product: Product) -> None:
    """The one that goes says so in the GPUShareNode."""
    selector = "app.kubernetes.io/component=plugin"
    cluster.kubectl("delete", "pod", "-n", SYSTEM, "-l", selector, "--wait=true")
    product.share_node(NODE, lambda node: is_true(node, "Registered"), what="the next plugin serves")


def test_a_change_of_mode_waits_for_pods_of_every_class(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    run(cluster, namespace, asking("halves", 2, SLICE), asking("memory", 10, MEMORY))
    product.apply(policy("default", nodes=[NODE], cards=4, memory="86Gi"))
    blocked = product.share_node(
        NODE, lambda node: is_true(node, "UnitChangeBlocked"), what="the change is blocked"
    )
    assert (
        "mode Memory is applied when these 2 pods are gone"
        in condition(blocked, "UnitChangeBlocked")["message"]
    )
    delete(cluster, namespace, "halves")
    delete(cluster, namespace, "memory")
    await_offered(cluster, 0, 0, 344)
    product.apply(mixed_policy())
    await_offered(cluster, 4, 8, 344)


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_container_of_two_resources_is_refused_at_once(
    cluster: LocalCluster, namespace: str, where: str
) -> None:
    crowded = container("crowded", 10, resource=MEMORY)
    crowded["resources"]["limits"][SLICE] = "1"
    body = two_containers("pod", container("plain", 0))
    body["spec"][where] = [crowded, *body["spec"].get(where, ())]
    with pytest.raises(LocalClusterError, match="container crowded asks for"):
        create(cluster, namespace, [body])
