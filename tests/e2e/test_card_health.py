"""A card fails under a pod and returns by proof, or is cordoned: kubelet and scheduler are real."""

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.books import read_books
from tests.e2e.observe import CALL_SECONDS, NODES, PODS, condition, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, named, policy
from tests.e2e.rights import await_right
from tests.e2e.workloads import MEMORY, create, pod

from gpushare_core.api.names import CORDON_ANNOTATION, CORDON_REASON_ANNOTATION, SIMULATE_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import events
from gpushare_core.process.clock import utc_now
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import PodName

NODE = "gpu-1"
pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_cards")]


@pytest.fixture(scope="module")
def two_cards(product: Product) -> Iterator[None]:
    """Of 16 units each; sick ones have to be quiet for 3 s."""
    body = policy("health", nodes=[NODE], cards=2)
    body["spec"]["nodes"][0]["devices"]["health"] = {"quietSeconds": 3}
    with product.in_force(body):
        yield


def annotate(cluster: LocalCluster, key: str, value: str, *options: str) -> None:
    change = f"{key}={value}" if value else f"{key}-"
    cluster.kubectl("annotate", "gpusharenode", NODE, change, "--overwrite", *options)


def allocatable(cluster: LocalCluster, units: int) -> None:
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(
            named(node, NODE) and node["status"]["allocatable"].get(MEMORY, "0") == str(units)
            for node in nodes
        ),
        what=f"{units} units are allocatable",
        describe=lambda nodes: [node["status"]["allocatable"] for node in nodes if named(node, NODE)],
    )


def until_pod(cluster: LocalCluster, namespace: str, name: str, holds: Any, *, what: str) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, name) and holds(pod) for pod in pods),
        what=f"pod {name} {what}",
        describe=lambda pods: [pod["status"] for pod in pods if named(pod, name)],
    )


def run(cluster: LocalCluster, namespace: str, name: str, units: int) -> str:
    """Returns the card that the new pod runs on."""
    create(cluster, namespace, [pod(name, {"main": units}, on=NODE)])
    until_pod(cluster, namespace, name, is_running, what="runs")
    return card_of(cluster, namespace, name)


def card_of(cluster: LocalCluster, namespace: str, name: str) -> str:
    found = read_books(cluster, namespace).environment
    return next(share.card for key, share in found.items() if key.pod == name)


def waits(item: Json) -> bool:
    return condition(item, "PodScheduled").get("reason") == "Unschedulable"


def is_sick(node: Json) -> bool:
    return condition(node, "CardsHealthy").get("reason") == "CardsUnhealthy"


def faults(node: Json) -> list[Json]:
    found: list[Json] = node["status"].get("faults", [])
    return found


def told(cluster: LocalCluster, namespace: str) -> list[str]:
    """Waits for an Event about a sick card; returns the names of the pods that have one."""

    def of_cards(found: Any) -> list[str]:
        return [event["regarding"]["name"] for event in found if event["reason"] == "CardUnhealthy"]

    return of_cards(
        watch_until(cluster, events(namespace), lambda found: bool(of_cards(found)), what="an Event on a pod")
    )


@pytest.mark.usefixtures("books_agree")
def test_a_card_fails_under_a_pod_and_returns_by_proof(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    card = run(cluster, namespace, "old", 4)
    node = product.share_node(NODE, bool, what="its status")
    (index,) = (present["index"] for present in node["status"]["cards"] if present["uuid"] == card)
    annotate(cluster, SIMULATE_ANNOTATION, f"xid={index}:79 repair={index}")
    sick = product.share_node(NODE, is_sick, what="the card is sick")
    assert f"card {index} ({card}): " in condition(sick, "CardsHealthy")["message"]
    allocatable(cluster, 16)
    assert told(cluster, namespace) == ["old"]
    assert run(cluster, namespace, "new", 12) != card
    create(cluster, namespace, [pod("waiting", {"main": 5}, on=NODE)])
    until_pod(cluster, namespace, "waiting", waits, what="waits")

    cluster.kubectl("delete", "pod", "-n", SYSTEM, "-l", "app.kubernetes.io/component=plugin", "--wait=true")
    after = product.share_node(NODE, lambda node: is_true(node, "Registered"), what="the next plugin serves")
    assert is_sick(after)
    assert [fault["since"] for fault in faults(after)] == [fault["since"] for fault in faults(sick)]
    allocatable(cluster, 16)

    annotate(cluster, SIMULATE_ANNOTATION, "")
    well = product.share_node(NODE, lambda node: is_true(node, "CardsHealthy"), what="the card returns")
    assert [fault["clearedBy"] for fault in faults(well)] == ["QuietTime"]
    allocatable(cluster, 32)
    until_pod(cluster, namespace, "waiting", is_running, what="runs")
    assert card_of(cluster, namespace, "waiting") == card
    assert told(cluster, namespace) == ["old"]


@pytest.mark.usefixtures("books_agree")
def test_nobody_new_comes_to_a_cordoned_card_and_its_pods_stay(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    card = run(cluster, namespace, "old", 4)
    annotate(cluster, CORDON_ANNOTATION, card)
    product.share_node(NODE, lambda node: is_true(node, "CardsCordoned"), what="the card is cordoned")
    allocatable(cluster, 20)
    assert run(cluster, namespace, "new", 16) != card
    create(cluster, namespace, [pod("waiting", {"main": 1}, on=NODE)])
    until_pod(cluster, namespace, "waiting", waits, what="waits")
    cluster.kubectl("delete", "pod", "old", "-n", namespace)
    allocatable(cluster, 16)
    until_pod(cluster, namespace, "waiting", waits, what="still waits")
    annotate(cluster, CORDON_ANNOTATION, "")
    until_pod(cluster, namespace, "waiting", is_running, what="runs")
    assert card_of(cluster, namespace, "waiting") == card


def test_who_looks_after_cards_changes_nothing_else(cluster: LocalCluster, product: Product) -> None:
    cluster.kubectl("create", "clusterrolebinding", "nurse", "--clusterrole=gpushare-cards", "--user=nurse")
    try:
        await_right(cluster, "patch", "gpusharenodes", "--as=nurse")
        annotate(cluster, CORDON_ANNOTATION, "9", "--as=nurse")
        annotate(cluster, CORDON_REASON_ANNOTATION, "GPU-9: fan is loud", "--as=nurse")
        product.share_node(
            NODE,
            lambda node: condition(node, "CardsCordoned").get("reason") == "UnknownCards",
            what="what names no card is said",
        )
        annotate(cluster, CORDON_ANNOTATION, "", "--as=nurse")
        annotate(cluster, CORDON_REASON_ANNOTATION, "", "--as=nurse")
        with pytest.raises(LocalClusterError, match=r"cordon-reason and gpushare.io/clear-fault of a"):
            annotate(cluster, SIMULATE_ANNOTATION, "fail=0", "--as=nurse")
        patch = json.dumps({"spec": {"mode": "Off"}})
        with pytest.raises(LocalClusterError, match=r"follows from the GPUSharePolicy"):
            cluster.kubectl("patch", "gpusharenode", NODE, "--type=merge", "-p", patch, "--as=nurse")
    finally:
        cluster.kubectl("delete", "clusterrolebinding", "nurse")


@pytest.mark.parametrize("change", [{"reportingInstance": "gpu-2"}, {"reportingController": "kubelet"}])
def test_a_plugin_writes_events_in_its_own_name_only(
    cluster: LocalCluster, namespace: str, change: Json
) -> None:
    event = PodEvent(pod=PodName(namespace, "a"), uid="u", reason="CardUnhealthy", note="it is sick")
    body = event.to_json(NODE, utc_now())
    token = cluster.kubectl(
        "create",
        "token",
        "gpushare-plugin",
        "-n",
        SYSTEM,
        f"--bound-object-name={NODE}",
        "--bound-object-kind=Node",
    )
    credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)

    async def send(sent: Json) -> None:
        async with KubeClient(credentials, timeout=CALL_SECONDS) as client:
            await client.create(events(namespace), sent)

    with pytest.raises(ApiError, match="plugin of node gpu-1 may write Events only about pods"):
        asyncio.run(send(body | change))
    asyncio.run(send(body))
