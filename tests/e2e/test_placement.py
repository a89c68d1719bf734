"""Where equal pods come to lie beside kube-scheduler's own plugins: packed, spread, or as they prefer."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.observe import PODS, Json, get, watch_until
from tests.e2e.outcomes import is_running, summary
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_cards_each")]

NODES = ["gpu-1", "gpu-2", "gpu-3"]
SELECTED = {"app": "equal"}
APART: Json = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": SELECTED},
                    },
                }
            ]
        }
    }
}
SPREAD_SOFTLY: Json = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": SELECTED},
        }
    ]
}


def cards(strategy: str) -> Json:
    body = policy("default", nodes=NODES, cards=2)
    body["spec"]["placement"] = {"strategy": strategy}
    return body


@pytest.fixture(scope="module")
def two_cards_each(product: Product) -> Iterator[None]:
    with product.in_force(cards("Binpack")):
        yield


def deployment(units: int, replicas: int, **spec: Any) -> Json:
    body = pod("", {"main": units})["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "equal"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": SELECTED},
            "template": {"metadata": {"labels": SELECTED}, "spec": {**body, **spec}},
        },
    }


def nodes_of(cluster: LocalCluster, namespace: str, running: int) -> list[int]:
    """Waits for so many pods; returns how many of them each node has, the most first."""
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: sum(map(is_running, seen)) == running,
        what=f"{running} pods run",
        describe=summary,
    )
    return sorted(Counter(pod["spec"]["nodeName"] for pod in pods).values(), reverse=True)


def test_a_deployment_that_grows_stays_on_one_node(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [deployment(3, 1)])
    for replicas in range(1, 5):
        cluster.kubectl("scale", "deployment/equal", f"--replicas={replicas}", "-n", namespace)
        assert nodes_of(cluster, namespace, replicas) == [replicas]


def test_the_pods_of_a_deployment_fill_one_card_before_the_next(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [deployment(2, 8)])
    assert nodes_of(cluster, namespace, 8) == [8]
    pods = get(cluster, PODS.format(namespace=namespace))["items"]
    used = {
        card
        for pod in pods
        for card in json.loads(pod["metadata"]["annotations"]["gpushare.io/allocation"])["cards"]
    }
    assert len(used) == 1


def test_two_pods_of_one_file_for_which_one_card_has_room_share_it(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [pod("one", {"main": 8}), pod("two", {"main": 8})])
    assert nodes_of(cluster, namespace, 2) == [2]


@pytest.mark.parametrize("spec", [APART, SPREAD_SOFTLY], ids=["anti-affinity", "topology spread"])
def test_what_the_pods_prefer_themselves_comes_first(
    cluster: LocalCluster, namespace: str, spec: Json
) -> None:
    create(cluster, namespace, [deployment(2, 3, **spec)])
    assert nodes_of(cluster, namespace, 3) == [1, 1, 1]


def test_spread_takes_other_nodes_and_then_other_cards(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(cards("Spread"))
    product.await_ready("default")
    create(cluster, namespace, [deployment(2, 6)])
    assert nodes_of(cluster, namespace, 6) == [2, 2, 2]
    pods = get(cluster, PODS.format(namespace=namespace))["items"]
    used = [
        (
            pod["spec"]["nodeName"],
            *json.loads(pod["metadata"]["annotations"]["gpushare.io/allocation"])["cards"],
        )
        for pod in pods
    ]
    assert len(set(used)) == 6, "no two on one card"
    product.apply(cards("Binpack"))
    product.await_ready("default")


def test_a_younger_policy_without_nodes_changes_nothing(cluster: LocalCluster, product: Product) -> None:
    """It had kube-scheduler edited for its dialect, twice."""
    jobs = "/apis/batch/v1/namespaces/gpushare-system/jobs"
    before = {item["metadata"]["name"] for item in get(cluster, jobs)["items"]}
    idle = policy("idle", nodes=["no-such-node"])
    idle["spec"]["dialect"] = "volcano.sh"
    idle["spec"]["scheduler"] = {"extenderPort": 22800}
    product.apply(idle)
    watch_until(
        cluster,
        "/apis/gpushare.io/v1alpha1/gpusharepolicies",
        lambda seen: any(policy["metadata"]["name"] == "idle" and policy.get("status") for policy in seen),
        what="the policy has a status",
        describe=lambda seen: [policy.get("status") for policy in seen],
    )
    product.await_ready("default")
    assert {item["metadata"]["name"] for item in get(cluster, jobs)["items"]} <= before
    product.delete("idle")
    assert {item["metadata"]["name"] for item in get(cluster, jobs)["items"]} <= before
