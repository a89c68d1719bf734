"""Modes side by side: slices on one node, whole cards on another, memory on the third.

What every mode gives and refuses in every dialect is in ``test_modes_and_dialects``.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.books import Key, read_books
from tests.e2e.observe import PODS, POLICIES, Json, condition, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import CARD, MEMORY, SLICE, create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("three_modes")]

NODES = {SLICE: "gpu-1", CARD: "gpu-2", MEMORY: "gpu-3"}
CARDS = 4


def three_modes_policy() -> Json:
    body = policy("default", nodes=[NODES[MEMORY]], cards=CARDS)
    (memory,) = body["spec"]["nodes"]
    slices = {**memory, "names": [NODES[SLICE]], "mode": "Slices", "slicesPerCard": 2}
    exclusive = {**memory, "names": [NODES[CARD]], "mode": "Exclusive"}
    body["spec"]["nodes"] = [memory, slices, exclusive]
    return body


@pytest.fixture(scope="module")
def three_modes(product: Product) -> Iterator[None]:
    with product.in_force(three_modes_policy()):
        yield


def run(cluster: LocalCluster, namespace: str, name: str, amount: int, resource: str) -> list[str]:
    """Run a pod and return its cards."""
    create(cluster, namespace, [pod(name, {"main": amount}, resource=resource)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
    )
    return read_books(cluster, namespace).environment[Key(namespace, name, "main")].cards


def refusal(cluster: LocalCluster, namespace: str, name: str) -> str:
    def message(pods: Any) -> str:
        found = [pod for pod in pods if pod["metadata"]["name"] == name]
        return str(condition(found[0], "PodScheduled").get("message", "")) if found else ""

    return message(
        watch_until(
            cluster,
            PODS.format(namespace=namespace),
            lambda pods: bool(message(pods)),
            what=f"{name} is refused",
        )
    )


@pytest.mark.usefixtures("books_agree")
def test_two_slices_are_of_two_cards_and_both_halves_of_a_card_are_used(
    cluster: LocalCluster, namespace: str
) -> None:
    cards = [run(cluster, namespace, f"pod-{number}", 2, SLICE) for number in range(4)]
    assert all(len(set(pair)) == 2 for pair in cards)
    used = [card for pair in cards for card in pair]
    assert {card: used.count(card) for card in used} == dict.fromkeys(used, 2)
    assert len(set(used)) == CARDS


def test_whole_cards_are_nobody_elses(cluster: LocalCluster, namespace: str) -> None:
    first = run(cluster, namespace, "three", 3, CARD)
    create(cluster, namespace, [pod("two", {"main": 2}, resource=CARD)])
    assert "Insufficient gpushare.io/card" in refusal(cluster, namespace, "two")
    (last,) = run(cluster, namespace, "one", 1, CARD)
    assert last not in first


def test_kubectl_tells_the_modes_apart(cluster: LocalCluster, product: Product, namespace: str) -> None:
    run(cluster, namespace, "slices", 2, SLICE)
    run(cluster, namespace, "card", 1, CARD)
    for resource, summary in [(SLICE, "1/2 1/2 0/2 0/2"), (CARD, "whole free free free")]:
        product.share_node(
            NODES[resource],
            lambda node, summary=summary: node["status"]["summary"] == summary,
            what=f"{NODES[resource]} shows {summary}",
        )
    watch_until(
        cluster,
        POLICIES,
        lambda policies: any(
            of_units(policy) == ("1 card, 1/2 card, 1Gi", "1/4, 2/8, 0/64") for policy in policies
        ),
        what="the policy keeps the kinds of units apart",
        describe=lambda policies: [of_units(policy) for policy in policies],
    )
    print(cluster.kubectl("get", "gpushare"))


def of_units(policy: Json) -> tuple[str, str]:
    units = policy.get("status", {}).get("units", {})
    return units.get("unit", ""), units.get("summary", "")


def test_a_change_of_mode_waits_for_the_pods_that_hold_slices(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    run(cluster, namespace, "holder", 2, SLICE)
    changed = three_modes_policy()
    changed["spec"]["nodes"][1] = {**changed["spec"]["nodes"][0], "names": [NODES[SLICE]]}
    product.apply(changed)
    blocked = product.share_node(
        NODES[SLICE], lambda node: is_true(node, "UnitChangeBlocked"), what="the change is blocked"
    )
    assert f"{namespace}/holder" in condition(blocked, "UnitChangeBlocked")["message"]
    cluster.kubectl("delete", "pod", "holder", "-n", namespace)
    product.share_node(
        NODES[SLICE],
        lambda node: node["status"]["memoryUnit"] == "1Gi" and is_true(node, "Registered"),
        what="memory is shared when the pod is gone",
    )
    create(cluster, namespace, [pod("memory", {"main": 4}, on=NODES[SLICE])])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == "memory" and is_running(pod) for pod in pods),
        what="a pod that asks for memory runs where slices were",
    )
    product.apply(three_modes_policy())
