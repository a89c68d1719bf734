"""A node of Aliyun's gpushare becomes one of ours and goes back: what runs there runs on, and counts."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.observe import NODES, PODS, SHARE_NODES, Json, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, named, policy
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

NODE, RESOURCE = "gpu-2", "aliyun.com/gpu-mem"
PLUGIN = Path(__file__).with_name("replaced_plugin.py")


@contextmanager
def replaced_plugin(cluster: LocalCluster, *indexes: str) -> Iterator[None]:
    """Two cards of 16 units; containers get the cards ``indexes``, one after the other."""
    arguments = [sys.executable, str(PLUGIN), "2", "16", *indexes]
    command = cluster.node_command(NODE, arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "registered\n"
        yield
        process.communicate(timeout=240)


def capacity(nodes: Sequence[Json]) -> str:
    return next(
        (node["status"].get("allocatable", {}).get(RESOURCE, "") for node in nodes if named(node, NODE)), ""
    )


def until_offered(cluster: LocalCluster) -> None:
    what = f"{NODE} offers 32 of {RESOURCE}"
    watch_until(cluster, NODES, lambda nodes: capacity(nodes) == "32", what=what, describe=capacity)


def run(cluster: LocalCluster, namespace: str, name: str, units: int) -> None:
    create(cluster, namespace, [asking(name, units)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, name) and is_running(pod) for pod in pods),
        what=f"{name} runs",
        describe=lambda pods: [pod.get("status") for pod in pods if named(pod, name)],
    )


def asking(name: str, units: int) -> Json:
    return pod(name, {"main": units}, node=NODE, resource=RESOURCE)


def on_cards(share_node: Json) -> dict[str, list[int]]:
    """Pod -> units on each card."""
    cards = sorted(share_node.get("status", {}).get("cards", []), key=lambda card: card["index"])
    found: dict[str, list[int]] = {}
    for card in cards:
        for share in card.get("pods", []):
            found.setdefault(share["name"], [0] * len(cards))[card["index"]] += share["units"]
    return found


def shown(cluster: LocalCluster, expected: dict[str, list[int]]) -> Json:
    (seen,) = (
        node
        for node in watch_until(
            cluster,
            SHARE_NODES,
            lambda nodes: any(named(node, NODE) and on_cards(node) == expected for node in nodes),
            what=f"the status shows {expected}",
            describe=lambda nodes: [on_cards(node) for node in nodes],
        )
        if named(node, NODE)
    )
    return seen


def running(cluster: LocalCluster, namespace: str) -> dict[str, tuple[str, int]]:
    """Pod -> ID and restarts of its container."""
    pods: list[Any] = watch_until(cluster, PODS.format(namespace=namespace), bool, what="the pods")
    statuses = {
        pod["metadata"]["name"]: pod["status"]["containerStatuses"][0] for pod in pods if is_running(pod)
    }
    return {name: (status["containerID"], status["restartCount"]) for name, status in statuses.items()}


def test_there_and_back(cluster: LocalCluster, product: Product, namespace: str) -> None:
    with replaced_plugin(cluster, "0", "1"):
        until_offered(cluster)
        run(cluster, namespace, "old-0", 10)
        run(cluster, namespace, "old-1", 6)
    before = running(cluster, namespace)

    body = policy("default", nodes=[NODE], cards=2)
    body["spec"]["dialect"] = "aliyun.com"
    product.apply(body)
    product.await_ready("default")
    shown(cluster, {"old-0": [10, 0], "old-1": [0, 6]})
    until_offered(cluster)  # neither more nor less than the cards have
    run(cluster, namespace, "new", 8)
    shown(cluster, {"old-0": [10, 0], "old-1": [0, 6], "new": [0, 8]})
    create(cluster, namespace, [asking("too-much", 8)])
    refused = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, "too-much") and pod["status"]["phase"] == "Failed" for pod in pods),
        what="too-much is refused",
    )
    (message,) = (pod["status"]["message"] for pod in refused if named(pod, "too-much"))
    assert "asked 8, largest free 6" in message

    cluster.restart_kubelet(NODE)
    until_offered(cluster)
    shown(cluster, {"old-0": [10, 0], "old-1": [0, 6], "new": [0, 8]})

    with_new = running(cluster, namespace)
    assert {name: with_new[name] for name in before} == before
    product.delete("default")
    with replaced_plugin(cluster, "0"):
        until_offered(cluster)
        run(cluster, namespace, "after", 4)
        after = running(cluster, namespace)
    assert {name: after[name] for name in with_new} == with_new
