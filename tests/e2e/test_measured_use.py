"""A pod's simulated load: from its annotation to status, metrics, condition and Events, and back."""

import re
from collections.abc import Iterator

import pytest
from tests.e2e.observe import PODS, POLICIES, SHARE_NODES, Json, condition, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, named, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("measuring_policy")]

NODE = "gpu-1"


@pytest.fixture(scope="module")
def measuring_policy(product: Product) -> Iterator[None]:
    body = policy("default", nodes=[NODE], cards=2)
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers"}}
    with product.in_force(body):
        yield


def load(cluster: LocalCluster, namespace: str, text: str) -> None:
    note = f"{SIMULATED_LOAD_ANNOTATION}={text}"
    cluster.kubectl("annotate", "pod", "loaded", "-n", namespace, "--overwrite", note)


def used(share_node: Json) -> list[str]:
    """Of the node, of its cards, and of all containers."""
    status = share_node["status"]
    shares = [share for card in status["cards"] for share in card["pods"]]
    return [status["memory"]["used"], *(entry["usedMemory"] for entry in (*status["cards"], *shares))]


def until_used(product: Product, *expected: str) -> Json:
    return product.share_node(
        NODE, lambda node: used(node) == list(expected), what=f"in use: {', '.join(expected)}"
    )


def until_shown(cluster: LocalCluster, size: int) -> None:
    """Wait until the plugin's metrics show that a container has ``size`` bytes in use."""
    chosen = ["-l", "app.kubernetes.io/component=plugin", f"--field-selector=spec.nodeName={NODE}"]
    plugin = cluster.kubectl("get", "pods", "-n", SYSTEM, *chosen, "-o", "name").strip()
    path = f"/api/v1/namespaces/{SYSTEM}/pods/{plugin.removeprefix('pod/')}:9640/proxy/metrics"

    def shown() -> list[str]:
        text = cluster.kubectl("get", "--raw", path)
        return re.findall(r"^gpushare_container_memory_used_bytes\{.*pod=\"loaded\".*\} (.*)$", text, re.M)

    wait_until(
        f"{size} bytes in the metrics",
        lambda: [float(figure) for figure in shown()] == [float(size)],
        interval=0.2,
        explain=lambda: str(shown()),
    )


def until_events(cluster: LocalCluster, namespace: str, *reasons: str) -> None:
    def told(events: list[Json]) -> list[str]:
        ours = [event for event in events if event.get("reportingController") == "gpushare-plugin"]
        return [event["reason"] for event in sorted(ours, key=lambda event: str(event["eventTime"]))]

    watch_until(
        cluster,
        f"/apis/events.k8s.io/v1/namespaces/{namespace}/events",
        lambda events: told(list(events)) == list(reasons),
        what=f"Events {reasons}",
        describe=lambda events: told(list(events)),
    )


@pytest.mark.usefixtures("books_agree")
def test_a_load_comes_grows_past_what_was_asked_for_and_goes(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    create(cluster, namespace, [pod("loaded", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="the pod runs",
    )
    load(cluster, namespace, "2Gi")
    until_used(product, "2Gi", "2Gi", "0", "2Gi")
    policy_uses(cluster, "2Gi")
    version = get(cluster, f"{SHARE_NODES}/{NODE}")["metadata"]["resourceVersion"]
    for size in (2200, 2600, 1600):
        load(cluster, namespace, f"{size}Mi")
        until_shown(cluster, size * 2**20)
    assert get(cluster, f"{SHARE_NODES}/{NODE}")["metadata"]["resourceVersion"] == version
    load(cluster, namespace, "main=6Gi")
    exceeding = until_used(product, "6Gi", "6Gi", "0", "6Gi")
    assert condition(exceeding, "MemoryExceeded")["reason"] == "RequestExceeded"
    assert (
        f"container main of pod {namespace}/loaded uses 6Gi"
        in (condition(exceeding, "MemoryExceeded")["message"])
    )
    until_events(cluster, namespace, "MemoryExceeded")
    print(cluster.kubectl("describe", "pod", "loaded", "-n", namespace).partition("Events:")[2])
    print(cluster.kubectl("get", "gpushare", "-o", "wide"))
    load(cluster, namespace, "lots of it")
    within = until_used(product, "0", "0", "0", "0")
    assert condition(within, "MemoryExceeded")["status"] == "False"
    until_events(cluster, namespace, "MemoryExceeded", "MemoryWithinRequest")
    policy_uses(cluster, "0")


def policy_uses(cluster: LocalCluster, size: str) -> None:
    watch_until(
        cluster,
        POLICIES,
        lambda policies: any(
            named(policy, "default") and policy["status"]["memory"]["used"] == size for policy in policies
        ),
        what=f"the policy uses {size}",
        describe=lambda policies: [policy["status"]["memory"] for policy in policies],
    )
