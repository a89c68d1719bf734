"""The operator as a process: what it leaves alone, and what it survives."""

import json
import re
from typing import Any

import pytest
from tests.e2e.observe import NODES, POLICIES, SHARE_NODES, get, watch_until
from tests.e2e.product import SYSTEM, Product, named, policy

from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

MARKER = {**policy("marker", nodes=["nowhere"])}
FOLLOWED = (POLICIES, SHARE_NODES, f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets")
BUDGET = 160_000
"""kB of resident memory."""


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Any:
    """A policy on one node."""
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    yield
    product.delete("default")


def versions(cluster: LocalCluster) -> dict[str, str]:
    """Changes with every write of the operator.

    Of a policy with any write at all. The others' status is written by plugins and by Kubernetes itself:
    there a new object or a new generation tells.
    """
    return {
        each["metadata"]["name"]: each["metadata"]["resourceVersion"]
        if path == POLICIES
        else f"{each['metadata']['uid']} generation {each['metadata']['generation']}"
        for path in FOLLOWED
        for each in get(cluster, path)["items"]
        if each["metadata"]["name"] != "marker"
    }


def condition_of(policy: Any, kind: str) -> str:
    conditions = policy.get("status", {}).get("conditions", ())
    return next((str(each["reason"]) for each in conditions if each["type"] == kind), "")


def await_judged(cluster: LocalCluster, name: str) -> None:
    """Wait until the operator has looked at the policy ``name``."""
    watch_until(
        cluster,
        POLICIES,
        lambda policies: any(named(each, name) and condition_of(each, "Ready") for each in policies),
        what=f"the operator has judged policy {name}",
        seconds=90,
    )


def test_a_policy_carries_our_finalizer_and_nothing_of_kopf(cluster: LocalCluster) -> None:
    (held,) = get(cluster, POLICIES)["items"]
    assert held["metadata"]["finalizers"] == ["gpushare.io/restore"]
    assert not [key for key in held["metadata"].get("annotations", {}) if "kopf" in key or "gpushare" in key]


def test_nodes_carry_two_labels_and_nothing_else_of_ours(cluster: LocalCluster) -> None:
    (node,) = [each for each in get(cluster, NODES)["items"] if named(each, "gpu-1")]
    ours = {key: value for key, value in node["metadata"]["labels"].items() if "gpushare" in key}
    assert ours == {"gpushare.io/policy": "default", "gpushare.io/mode": "Memory"}
    assert "finalizers" not in node["metadata"]
    assert not [key for key in node["metadata"].get("annotations", {}) if "gpushare" in key or "kopf" in key]


def test_a_restart_changes_nothing(cluster: LocalCluster, product: Product) -> None:
    before = versions(cluster)
    cluster.kubectl("rollout", "restart", "deployment/gpushare-operator", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=120s")
    product.apply(MARKER)
    await_judged(cluster, "marker")
    assert versions(cluster) == before
    product.delete("marker")


def offers_all(node: Any) -> bool:
    return bool(node.get("status", {}).get("units", {}).get("total") == 128)


def test_what_somebody_else_removes_comes_back(cluster: LocalCluster, product: Product) -> None:
    cluster.kubectl("label", "node", "gpu-1", "gpushare.io/mode-", "gpushare.io/policy-")
    watch_until(
        cluster,
        NODES,
        lambda nodes: any("gpushare.io/policy" in each["metadata"]["labels"] for each in nodes),
        what="the label comes back",
    )
    cluster.kubectl("delete", "daemonset", "gpushare-plugin-default", "-n", SYSTEM)
    cluster.kubectl("delete", "gpusharenode", "gpu-1")
    product.share_node("gpu-1", offers_all, what="it offers units again")
    product.await_ready("default")


def test_the_operator_keeps_within_its_memory(cluster: LocalCluster) -> None:
    (running,) = [
        each
        for each in cluster.containers()
        if each.pod.startswith("gpushare-operator") and each.state == "running"
    ]
    status = cluster.node_exec(running.node, ["cat", f"/proc/{running.pid}/status"]).stdout
    found = re.search(r"VmRSS:\s+(\d+) kB", str(status))
    assert found is not None
    assert int(found[1]) < BUDGET


def test_events_tell_the_story_where_a_user_looks(cluster: LocalCluster) -> None:
    described = cluster.kubectl("describe", "gpusharepolicy", "default")
    assert re.search(r"Normal\s+SchedulerConfigured", described)
    assert re.search(r"Normal\s+Ready", described)


def test_what_is_not_served_yet_is_said_and_breaks_nothing(cluster: LocalCluster, product: Product) -> None:
    exclusive = policy("exclusive", nodes=["gpu-2"], mode="Exclusive")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(exclusive))
    await_judged(cluster, "exclusive")
    (told,) = [each for each in get(cluster, POLICIES)["items"] if named(each, "exclusive")]
    assert condition_of(told, "Degraded") == "UnsupportedMode"
    assert condition_of(told, "Ready") == "UnsupportedMode"
    assert [each["metadata"]["name"] for each in get(cluster, SHARE_NODES)["items"]] == ["gpu-1"]
    product.await_ready("default")
    product.delete("exclusive")
