"""Nodes that come, leave and change under a policy, and units of every size."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.e2e.books import read_books
from tests.e2e.observe import NODES, PODS, POLICIES, SHARE_NODES, condition, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.plugin_processes import plugin_processes, stopped
from tests.e2e.product import Product, named, policy
from tests.e2e.workloads import MEMORY, create, pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import NodeConfig

CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"

pytestmark = [pytest.mark.e2e, pytest.mark.connected]


def units(total: int) -> Any:
    return lambda node: node.get("status", {}).get("units", {}).get("total") == total


def allocated(amount: int) -> Any:
    return lambda node: node.get("status", {}).get("units", {}).get("allocated") == amount


def with_cards(policy: Any, *memories: str) -> Any:
    """The policy with one simulated card of each of ``memories``."""
    (rule,) = policy["spec"]["nodes"]
    rule["devices"]["simulated"] = [{"count": 1, "memory": memory} for memory in memories]
    return policy


def allocatable(cluster: LocalCluster, node: str, amount: int) -> None:
    """Wait until ``node`` offers that much. For five minutes its kubelet remembers a resource as zero."""
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(
            named(present, node) and present["status"]["allocatable"].get(MEMORY, "0") == str(amount)
            for present in nodes
        ),
        what=f"node {node} offers {amount} units",
        describe=lambda nodes: [
            present["status"]["allocatable"] for present in nodes if named(present, node)
        ],
    )


def await_running(cluster: LocalCluster, namespace: str, name: str) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, name) and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
        describe=lambda pods: [pod["status"] for pod in pods],
    )


def await_message(
    cluster: LocalCluster, namespace: str, name: str, of: Callable[[Any], str | None], text: str
) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(named(pod, name) and text in (of(pod) or "") for pod in pods),
        what=f"pod {name} says {text}",
        describe=lambda pods: [pod["status"] for pod in pods],
    )


@pytest.mark.usefixtures("books_agree")
def test_a_quarter_of_a_million_units_register_and_serve_a_pod(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """8 cards of 32 GB in units of 1 MB: the kubelet takes one message of at most 4 MiB."""
    product.apply(policy("fine", nodes=["gpu-1"], unit="1M", cards=8, memory="32G"))
    product.await_ready("fine")
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(node["status"]["allocatable"].get(MEMORY) == "256k" for node in nodes),
        what="the kubelet offers 256,000 units",
    )
    create(cluster, namespace, [pod("fine", {"main": 20_000}, on="gpu-1")])
    await_running(cluster, namespace, "fine")
    (share,) = read_books(cluster, namespace).environment.values()
    assert share.units == 20_000
    cluster.kubectl("delete", "pod", "fine", "-n", namespace)
    product.delete("fine")


def test_a_unit_too_fine_for_the_kubelet_names_the_finest_that_works(product: Product) -> None:
    product.apply(policy("fine", nodes=["gpu-1"], unit="1M", cards=8, memory="80G"))
    told = product.share_node("gpu-1", lambda node: is_true(node, "UnitTooFine"), what="the unit is refused")
    message = condition(told, "UnitTooFine")["message"]
    assert "640000" in message.replace(",", "").replace(" ", "")
    assert "3M" in message
    product.delete("fine")


@pytest.mark.usefixtures("books_agree")
def test_a_unit_that_does_not_divide_the_card_leaves_the_rest_unused(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(policy("odd", nodes=["gpu-1"], unit="3Gi", cards=2, memory="16Gi"))
    product.await_ready("odd")
    allocatable(cluster, "gpu-1", 10)
    create(cluster, namespace, [pod("all", {"main": 5}, on="gpu-1")])
    await_running(cluster, namespace, "all")
    cluster.kubectl("delete", "pod", "all", "-n", namespace)
    product.delete("odd")


def test_reserved_memory_is_kept_out(cluster: LocalCluster, product: Product) -> None:
    product.apply(policy("reserve", nodes=["gpu-1"], cards=2, reservedMemory="512Mi"))
    product.await_ready("reserve")
    allocatable(cluster, "gpu-1", 30)
    product.delete("reserve")


def test_a_change_of_unit_waits_for_the_pods_that_hold_units(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(policy("unit", nodes=["gpu-1"]))
    product.await_ready("unit")
    create(cluster, namespace, [pod("holder", {"main": 4}, on="gpu-1")])
    await_running(cluster, namespace, "holder")
    product.apply(policy("unit", nodes=["gpu-1"], unit="256Mi"))
    blocked = product.share_node(
        "gpu-1", lambda node: is_true(node, "UnitChangeBlocked"), what="the change is blocked"
    )
    assert (
        f": {namespace}/holder; until then no new pod" in condition(blocked, "UnitChangeBlocked")["message"]
    )
    assert blocked["status"]["memoryUnit"] == "1Gi"
    allocatable(cluster, "gpu-1", 128)
    create(cluster, namespace, [pod("new", {"main": 4}), pod("direct", {"main": 4}, node="gpu-1")])
    reason = "no new pods until the pods with units of 1Gi are gone"
    await_message(
        cluster, namespace, "new", lambda pod: condition(pod, "PodScheduled").get("message"), reason
    )
    await_message(cluster, namespace, "direct", lambda pod: pod["status"].get("message"), reason)
    cluster.kubectl("delete", "pod", "holder", "-n", namespace)
    product.share_node("gpu-1", units(512), what="the new unit is applied when the pod is gone")
    allocatable(cluster, "gpu-1", 512)
    await_running(cluster, namespace, "new")
    shown = cluster.kubectl("exec", "-n", namespace, "new", "--", "printenv", "GPUSHARE_MEMORY_MIB")
    assert shown.strip() == "1024"
    product.delete("unit")


def test_a_policy_applied_anew_with_another_unit_respects_pods_of_the_old_one(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(policy("unit", nodes=["gpu-1"]))
    product.await_ready("unit")
    create(cluster, namespace, [pod("holder", {"main": 4}, on="gpu-1")])
    await_running(cluster, namespace, "holder")
    product.delete("unit")
    product.apply(policy("unit", nodes=["gpu-1"], unit="256Mi"))
    blocked = product.share_node(
        "gpu-1", lambda node: is_true(node, "UnitChangeBlocked"), what="the change is blocked"
    )
    assert blocked["status"]["memoryUnit"] == "1Gi"
    assert blocked["status"]["units"] == {"total": 128, "allocated": 4}
    cluster.kubectl("delete", "pod", "holder", "-n", namespace)
    product.share_node("gpu-1", units(512), what="the new unit is applied when the pod is gone")
    product.delete("unit")


@pytest.mark.usefixtures("books_agree")
def test_a_policy_applied_anew_with_other_cards_moves_no_running_pod(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """What unit IDs in use mean outlives the GPUShareNode: the kubelet's checkpoint is a witness of it."""
    product.apply(policy("cards", nodes=["gpu-1"], cards=2))
    product.await_ready("cards")
    create(cluster, namespace, [pod(name, {"main": 12}, on="gpu-1") for name in ("left", "right")])
    for name in ("left", "right"):
        await_running(cluster, namespace, name)
    before = read_books(cluster, namespace)
    product.delete("cards")
    product.apply(with_cards(policy("cards", nodes=["gpu-1"]), "28Gi", "16Gi"))
    product.await_ready("cards")
    found = product.share_node("gpu-1", allocated(24), what="both pods are found again")
    assert [card["units"] for card in found["status"]["cards"]] == [16, 16]
    after = read_books(cluster, namespace)
    assert after.annotation == before.annotation == after.environment == after.status
    create(cluster, namespace, [pod("third", {"main": 8}, on="gpu-1")])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(
            named(pod, "third") and "largest free 4" in condition(pod, "PodScheduled").get("message", "")
            for pod in pods
        ),
        what="there is room for no more than before",
    )
    cluster.kubectl("delete", "pods", "--all", "-n", namespace)
    product.share_node("gpu-1", units(44), what="the new cards are taken when the last pod is gone")
    product.delete("cards")


@pytest.mark.usefixtures("books_agree")
def test_pods_deleted_by_force_and_made_anew_are_other_pods(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(policy("force", nodes=["gpu-1"], cards=2))
    product.await_ready("force")
    create(cluster, namespace, [pod("web-0", {"main": 10}, on="gpu-1")])
    await_running(cluster, namespace, "web-0")
    for _ in range(3):
        cluster.kubectl("delete", "pod", "web-0", "-n", namespace, "--force", "--grace-period=0")
        create(cluster, namespace, [pod("web-0", {"main": 10}, on="gpu-1")])
        await_running(cluster, namespace, "web-0")
    product.share_node("gpu-1", allocated(10), what="the last one alone has units")
    cluster.kubectl("delete", "pod", "web-0", "-n", namespace)
    product.delete("force")


def test_a_pod_that_the_kubelet_forgot_keeps_its_card(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """The kubelet starts without its checkpoint while a container runs, and does not ask for it again."""
    product.apply(policy("forget", nodes=["gpu-1"], cards=2))
    product.await_ready("forget")
    create(cluster, namespace, [pod("old", {"main": 12}, on="gpu-1")])
    await_running(cluster, namespace, "old")
    (old,) = read_books(cluster, namespace).environment.values()
    cluster.node_path("gpu-1", CHECKPOINT).unlink()
    cluster.restart_kubelet("gpu-1")
    forgot = product.share_node(
        "gpu-1",
        lambda node: condition(node, "LedgerInSync").get("reason") == "KubeletForgot",
        what="the loss is said",
    )
    assert f"{namespace}/old" in condition(forgot, "LedgerInSync")["message"]
    assert forgot["status"]["units"]["allocated"] == 12
    product.share_node("gpu-1", lambda node: is_true(node, "Registered"), what="the plugin is registered")
    create(cluster, namespace, [pod("new", {"main": 12}, on="gpu-1")])
    await_running(cluster, namespace, "new")
    cards = {key.pod: share.card for key, share in read_books(cluster, namespace).environment.items()}
    assert cards["old"] == old.card != cards["new"]
    cluster.kubectl("delete", "pods", "--all", "-n", namespace)
    product.share_node(
        "gpu-1", lambda node: condition(node, "LedgerInSync").get("reason") == "InSync", what="it is over"
    )
    product.delete("forget")


def books_of(policies: Any, name: str) -> Any:
    return next((condition(policy, "BooksAgree") for policy in policies if named(policy, name)), {})


def await_books(cluster: LocalCluster, name: str, status: str) -> str:
    """Returns the message of the condition once it has ``status``."""
    seen = watch_until(
        cluster,
        POLICIES,
        lambda policies: books_of(policies, name).get("status") == status,
        what=f"BooksAgree of {name} is {status}",
        describe=lambda policies: books_of(policies, name),
    )
    return str(books_of(seen, name)["message"])


def test_a_status_that_somebody_edits_while_the_plugin_stands_still_is_noticed(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """By nobody but the extender: the edited status goes together in itself, and frees units that are in
    use. The policy says so, and says when it is over."""
    product.apply(policy("edited", nodes=["gpu-1"], cards=1))
    product.await_ready("edited")
    create(cluster, namespace, [pod("a", {"main": 12}, on="gpu-1")])
    await_running(cluster, namespace, "a")
    true = product.share_node("gpu-1", allocated(12), what="the plugin has counted it")
    assert await_books(cluster, "edited", "True") == "all records of 1 node agree"
    (card,) = true["status"]["cards"]
    forged = {"units": {"allocated": 0}, "cards": [{**card, "allocatedUnits": 0, "pods": []}]}
    with stopped(plugin_processes(cluster, "gpu-1")):
        patch = ("patch", "gpusharenode", "gpu-1", "--subresource=status", "--type=merge", "-p")
        cluster.kubectl(*patch, json.dumps({"status": forged}))
        message = await_books(cluster, "edited", "False")
        shown = cluster.kubectl("get", "gpushare")
    assert message.startswith("gpu-1: the extender of ")
    assert f"{namespace}/a" in message
    assert card["uuid"] in message
    assert "BOOKS" in shown
    assert await_books(cluster, "edited", "True") == "all records of 1 node agree"
    cluster.kubectl("delete", "pod", "a", "-n", namespace)
    product.delete("edited")


def test_a_policy_follows_nodes_that_appear_and_leave(cluster: LocalCluster, product: Product) -> None:
    by_label = policy("label", nodes=["gpu-1"])
    (rule,) = by_label["spec"]["nodes"]
    del rule["names"]
    rule["selector"] = {"matchLabels": {"pool": "fresh"}}
    product.apply(by_label)
    cluster.add_node(NodeConfig("gpu-fresh", labels={"pool": "fresh"}))
    product.share_node("gpu-fresh", units(128), what="the new node shares its cards")
    allocatable(cluster, "gpu-fresh", 128)
    cluster.kubectl("label", "node", "gpu-fresh", "pool-")
    await_unshared(cluster, "gpu-fresh")
    watch_until(
        cluster,
        NODES,
        lambda nodes: (
            not any(
                named(node, "gpu-fresh") and "gpushare" in str(node["metadata"]["labels"]) for node in nodes
            )
        ),
        what="its labels are gone",
    )
    allocatable(cluster, "gpu-fresh", 0)
    cluster.kubectl("label", "node", "gpu-fresh", "pool=fresh")
    product.share_node("gpu-fresh", units(128), what="it comes back")
    cluster.remove_node("gpu-fresh")
    await_unshared(cluster, "gpu-fresh")
    product.delete("label")


@pytest.mark.usefixtures("books_agree")
def test_a_node_that_reboots_keeps_its_promises(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    cluster.add_node(NodeConfig("gpu-reboot"))
    cluster.wait_ready()
    product.apply(policy("reboot", nodes=["gpu-reboot"]))
    product.await_ready("reboot")
    create(cluster, namespace, [pod(f"p{number}", {"main": 6}, on="gpu-reboot") for number in range(6)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(pods) == 6 and all(is_running(pod) for pod in pods),
        what="six pods run",
    )
    cluster.kill_node("gpu-reboot")
    cluster.start_node("gpu-reboot")
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: all(rests(pod) for pod in pods) and restarted(pods),
        what="the pods came back, or were refused by the kubelet while the plugin was not there yet",
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    cluster.kubectl("delete", "pods", "--all", "-n", namespace)
    product.delete("reboot")
    cluster.remove_node("gpu-reboot")
    await_unshared(cluster, "gpu-reboot")


def await_unshared(cluster: LocalCluster, node: str) -> None:
    watch_until(
        cluster,
        SHARE_NODES,
        lambda nodes: not any(named(present, node) for present in nodes),
        what=f"node {node} is no longer shared",
    )


def rests(pod: Any) -> bool:
    return is_running(pod) or pod["status"].get("phase") == "Failed"


def restarted(pods: Any) -> bool:
    return all(
        pod["status"].get("phase") == "Failed" or pod["status"]["containerStatuses"][0]["restartCount"] > 0
        for pod in pods
    )
