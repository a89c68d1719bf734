"""A hundred pods at once, quietly and with each of our processes dying in the middle."""

from collections.abc import Callable, Mapping

import pytest
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import await_outcomes, is_active, is_running, summary
from tests.e2e.product import SYSTEM
from tests.e2e.workloads import create, pod, replica_set

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("tight_policy")]

CARDS = [16] * 18
"""Three nodes of six cards: a hundred pods of 1 to 6 units ask for more than there is."""
REPLICAS = {1: 17, 2: 17, 3: 17, 4: 17, 5: 16, 6: 16}
LARGER = dict.fromkeys((2, 4, 6, 8, 10, 12), 8)
"""Also more than there is, with half of the pods: what a fault does does not depend on their number."""
WORKER = "gpu-2"

Fault = Callable[[LocalCluster], None]


def kill_one(cluster: LocalCluster, prefix: str, container: str, *, node: str | None = None) -> None:
    """SIGKILL of the running container, as the kernel's OOM killer would."""
    record = next(
        container
        for container in cluster.containers()
        if container.namespace == SYSTEM
        and container.pod.startswith(prefix)
        and container.state == "running"
        and node in (None, container.node)
    )
    cluster.kill_container(namespace=SYSTEM, pod=record.pod, container=container)


def kill_extender(cluster: LocalCluster) -> None:
    kill_one(cluster, "gpushare-extender", "extender")


def kill_operator(cluster: LocalCluster) -> None:
    kill_one(cluster, "gpushare-operator", "operator")


def kill_plugin(cluster: LocalCluster) -> None:
    kill_one(cluster, "gpushare-plugin", "plugin", node=WORKER)


def restart_kubelet(cluster: LocalCluster) -> None:
    cluster.restart_kubelet(WORKER)


def await_running(cluster: LocalCluster, namespace: str, count: int) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: sum(is_active(pod) and is_running(pod) for pod in pods) >= count,
        what=f"{count} pods run",
        describe=summary,
    )


@pytest.mark.parametrize("burst", [REPLICAS, LARGER])
def test_the_burst_asks_for_more_than_there_is(burst: Mapping[int, int]) -> None:
    assert sum(units * count for units, count in burst.items()) > sum(CARDS)


@pytest.mark.usefixtures("books_agree")
def test_a_hundred_pods_at_once_fill_the_cards_and_the_rest_waits(
    cluster: LocalCluster, namespace: str
) -> None:
    bodies = [
        pod(f"p{units}-{number}", {"main": units})
        for units, count in REPLICAS.items()
        for number in range(count)
    ]
    create(cluster, namespace, bodies)
    pods = await_outcomes(cluster, namespace, pods=100, capacity=CARDS)
    running = [pod for pod in pods if is_running(pod)]
    assert len(running) < len(pods)
    assert failed(pods) == []


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(kill_extender, id="extender killed"),
        pytest.param(restart_kubelet, id="kubelet restarted"),
        pytest.param(kill_plugin, id="plugin killed"),
        pytest.param(kill_operator, id="operator killed"),
    ],
)
@pytest.mark.usefixtures("books_agree")
def test_a_fault_in_the_middle_of_the_burst_changes_nothing_in_the_end(
    cluster: LocalCluster, namespace: str, fault: Fault
) -> None:
    sets = [replica_set(f"p{units}", units=units, replicas=count) for units, count in LARGER.items()]
    create(cluster, namespace, sets)
    await_running(cluster, namespace, 10)
    fault(cluster)
    pods = await_outcomes(cluster, namespace, pods=sum(LARGER.values()), capacity=CARDS)
    assert sum(is_running(pod) for pod in pods) < len(pods)


@pytest.mark.usefixtures("books_agree")
def test_fifty_equal_pods_on_one_node(cluster: LocalCluster, namespace: str) -> None:
    """Equal pods are where systems that guess the pod from its size put them on each other's cards."""
    create(cluster, namespace, [pod(f"equal-{number}", {"main": 1}, on=WORKER) for number in range(50)])
    await_running(cluster, namespace, 50)


def failed(pods: list[Json]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") == "Failed"]
