"""The operator as a process: what it leaves alone, and what it survives."""

import asyncio
import dataclasses
import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.observe import (
    CALL_SECONDS,
    NODES,
    PODS,
    POLICIES,
    SHARE_NODES,
    Json,
    condition,
    get,
    watch_until,
)
from tests.e2e.product import ROOT, SYSTEM, Product, named, policy

from gpushare_core.api.names import (
    COMPONENT_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    MANAGED_BY_LABEL,
    PLUGIN_NODE_LABEL,
    POLICY_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_localcluster.build.minors import Minor
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_operator.cluster.labels import COMPARE_LABEL, MANAGER, PLUGIN
from gpushare_operator.desired.names import VOLCANO_BACKUP

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

MARKER = {**policy("marker", nodes=["nowhere"])}
FOLLOWED = (POLICIES, SHARE_NODES, f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets")
JOBS = f"/apis/batch/v1/namespaces/{SYSTEM}/jobs"
BUDGET = 160_000
"""kB of resident memory."""


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Any:
    """A policy on one node."""
    with product.in_force(policy("default", nodes=["gpu-1"])):
        yield


def versions(cluster: LocalCluster) -> dict[str, str]:
    """Changes with every write of the operator.

    Of a policy with any write at all. The others' status is written by plugins and by Kubernetes itself:
    there a new object or a new generation tells.
    """
    return {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        if path == POLICIES
        else f"{item['metadata']['uid']} generation {item['metadata']['generation']}"
        for path in FOLLOWED
        for item in get(cluster, path)["items"]
        if item["metadata"]["name"] != "marker"
    }


def unmarked(cluster: LocalCluster) -> list[Json]:
    return [item for item in get(cluster, POLICIES)["items"] if not named(item, "marker")]


def differences(before: list[Json], after: list[Json]) -> str:
    """What was written, for the reader of a failure."""
    earlier, later = (json.dumps(state, indent=1, sort_keys=True).splitlines() for state in (before, after))
    return "\n".join(difflib.unified_diff(earlier, later, "before", "after", lineterm="", n=8))


def condition_of(policy: Any, kind: str) -> str:
    conditions = policy.get("status", {}).get("conditions", ())
    return next((str(condition["reason"]) for condition in conditions if condition["type"] == kind), "")


def await_judged(cluster: LocalCluster, name: str) -> None:
    """Wait until the operator has looked at the policy ``name``."""
    watch_until(
        cluster,
        POLICIES,
        lambda policies: any(named(policy, name) and condition_of(policy, "Ready") for policy in policies),
        what=f"the operator has judged policy {name}",
    )


def test_a_policy_carries_our_finalizer_and_nothing_of_kopf(cluster: LocalCluster) -> None:
    held = get(cluster, f"{POLICIES}/default")
    assert held["metadata"]["finalizers"] == ["gpushare.io/restore"]
    assert not [key for key in held["metadata"].get("annotations", {}) if "kopf" in key or "gpushare" in key]


def test_nodes_carry_four_labels_and_nothing_else_of_ours(cluster: LocalCluster) -> None:
    (node,) = [item for item in get(cluster, NODES)["items"] if named(item, "gpu-1")]
    ours = {key: value for key, value in node["metadata"]["labels"].items() if "gpushare" in key}
    assert ours == {
        "gpushare.io/policy": "default",
        PLUGIN_NODE_LABEL: "default",
        "gpushare.io/mode": "Memory",
        "gpushare.io/dialect": "gpushare.io",
    }
    assert "finalizers" not in node["metadata"]
    assert not [key for key in node["metadata"].get("annotations", {}) if "gpushare" in key or "kopf" in key]


def is_at_rest(policies: Any) -> bool:
    """Pods of earlier tests may still be on their way out of the kubelet's books, plugins on theirs in."""
    return all(
        policy.get("status", {}).get("units", {}).get("allocated") == 0
        and "it is unknown" not in condition(policy, "BooksAgree").get("message", "")
        for policy in policies
    )


def test_a_restart_changes_nothing(cluster: LocalCluster, product: Product) -> None:
    watch_until(cluster, POLICIES, is_at_rest, what="no units allocated, and all books seen")
    before = versions(cluster)
    said = unmarked(cluster)
    cluster.kubectl("rollout", "restart", "deployment/gpushare-operator", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")
    product.apply(MARKER)
    await_judged(cluster, "marker")
    assert versions(cluster) == before, differences(said, unmarked(cluster))
    product.delete("marker")


def offers_all(node: Any) -> bool:
    return bool(node.get("status", {}).get("units", {}).get("total") == 128)


def test_what_somebody_else_removes_comes_back(cluster: LocalCluster, product: Product) -> None:
    cluster.kubectl("label", "node", "gpu-1", "gpushare.io/mode-", "gpushare.io/policy-")
    watch_until(
        cluster,
        NODES,
        lambda nodes: any("gpushare.io/policy" in node["metadata"]["labels"] for node in nodes),
        what="the label comes back",
    )
    cluster.kubectl("delete", "daemonset", "gpushare-plugin-default", "-n", SYSTEM)
    cluster.kubectl("delete", "gpusharenode", "gpu-1")
    product.share_node("gpu-1", offers_all, what="it offers units again")
    product.await_ready("default")


def test_a_label_that_has_workloads_compared_is_taken_off_whoever_put_it_there(cluster: LocalCluster) -> None:
    plugin = "gpushare-plugin-default"
    cluster.kubectl("label", "daemonset", plugin, "-n", SYSTEM, f"{COMPARE_LABEL}=")
    watch_until(
        cluster,
        f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets",
        lambda items: COMPARE_LABEL not in labels_of(items, plugin),
        what="the operator takes the label off",
    )


def as_kubelet(cluster: LocalCluster, node: str, *labels: str) -> None:
    """Label its own node, with its own rights."""
    identity = (f"--as=system:node:{node}", "--as-group=system:nodes")
    cluster.kubectl("label", "node", node, *labels, *identity)


def test_a_kubelet_that_labels_its_node_gets_no_plugin_and_has_no_scheduler_edited(
    cluster: LocalCluster,
) -> None:
    jobs = {item["metadata"]["name"] for item in get(cluster, JOBS)["items"]}
    forged = ("gpushare.io/policy=default", "gpushare.io/mode=Exclusive", "gpushare.io/dialect=tuya.com")
    as_kubelet(cluster, "gpu-2", *forged)
    watch_until(
        cluster,
        NODES,
        lambda nodes: not any("gpushare" in key for key in labels_of(nodes, "gpu-2")),
        what="the operator takes the labels off",
    )
    pods = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    assert [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == "gpu-2"] == []
    assert {item["metadata"]["name"] for item in get(cluster, JOBS)["items"]} <= jobs


def manifest(name: str, **labels: str) -> str:
    """Returns what a kubelet runs from a file on its host."""
    container = {"name": "main", "image": "gpushare", "command": ["sleep", "1000"]}
    metadata = {"name": name, "namespace": SYSTEM, "labels": {MANAGED_BY_LABEL: MANAGER, **labels}}
    spec = {"hostNetwork": True, "containers": [container]}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_a_kubelet_that_shows_a_pod_like_a_plugin_has_no_scheduler_edited(cluster: LocalCluster) -> None:
    jobs = {item["metadata"]["name"] for item in get(cluster, JOBS)["items"]}
    pods = PODS.format(namespace=SYSTEM)
    path = cluster.node_path("gpu-2", "/etc/kubernetes/manifests/forged.yaml")
    path.write_text(manifest("forged", **{COMPONENT_LABEL: PLUGIN, POLICY_LABEL: "default"}))
    try:
        watch_until(
            cluster,
            pods,
            lambda items: any(named(item, "forged-gpu-2") for item in items),
            what="its pod is shown",
        )
        as_kubelet(cluster, "gpu-2", "gpushare.io/mode=Exclusive", "gpushare.io/dialect=tuya.com")
        watch_until(
            cluster,
            NODES,
            lambda nodes: not any("gpushare" in key for key in labels_of(nodes, "gpu-2")),
            what="the operator takes the labels off",
        )
        assert {item["metadata"]["name"] for item in get(cluster, JOBS)["items"]} <= jobs
    finally:
        path.unlink()
        watch_until(
            cluster,
            pods,
            lambda items: not any(named(item, "forged-gpu-2") for item in items),
            what="its pod is gone",
        )


def test_the_label_that_selects_its_nodes_no_kubelet_may_set(cluster: LocalCluster) -> None:
    with pytest.raises(LocalClusterError, match="not allowed to modify labels"):
        as_kubelet(cluster, "gpu-2", f"{PLUGIN_NODE_LABEL}=default")
    with pytest.raises(LocalClusterError, match="not allowed to modify labels"):
        as_kubelet(cluster, "gpu-1", f"{PLUGIN_NODE_LABEL}-")


def labels_of(nodes: Any, name: str) -> Any:
    return next(node["metadata"]["labels"] for node in nodes if named(node, name))


def test_the_operator_changes_no_other_config_map_than_its_backup(cluster: LocalCluster) -> None:
    theirs, ours = (paths.config_map_path(SYSTEM, name) for name in ("kube-root-ca.crt", VOLCANO_BACKUP))
    for call in ("apply", "merge"):
        with pytest.raises(ApiError, match="cannot patch resource"):
            as_operator(cluster, call, theirs, config_map("kube-root-ca.crt"))
    with pytest.raises(ApiError, match="cannot delete resource"):
        as_operator(cluster, "delete", theirs)
    with pytest.raises(ApiError, match="cannot create resource"):
        as_operator(cluster, "create", paths.config_maps(SYSTEM), config_map("another"))
    as_operator(cluster, "apply", ours, config_map(VOLCANO_BACKUP))
    as_operator(cluster, "delete", ours)


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}


def test_the_operator_keeps_within_its_memory(cluster: LocalCluster) -> None:
    (running,) = [
        container
        for container in cluster.containers()
        if container.pod.startswith("gpushare-operator") and container.state == "running"
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
    unserved = policy("unserved", nodes=["gpu-2"], mode="Slices", slicesPerCard=2)
    unserved["spec"] |= {"dialect": "volcano.sh", "scheduler": {"backend": "Volcano"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(unserved))
    await_judged(cluster, "unserved")
    (told,) = [item for item in get(cluster, POLICIES)["items"] if named(item, "unserved")]
    assert condition_of(told, "Degraded") == "UnsupportedMode"
    assert condition_of(told, "Ready") == "UnsupportedMode"
    shared = {item["metadata"]["name"] for item in get(cluster, SHARE_NODES)["items"]}
    assert shared - {"control-plane-1"} == {"gpu-1"}
    product.await_ready("default")
    product.delete("unserved")


def as_operator(cluster: LocalCluster, call: str, path: str, *body: Any, **options: Any) -> Any:
    """Does what somebody could who has the operator's token. Raises ``ApiError`` when it is refused."""
    token = cluster.kubectl("create", "token", "gpushare-operator", "-n", SYSTEM)
    credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)

    async def send() -> Any:
        async with KubeClient(credentials, field_manager="gpushare-operator", timeout=CALL_SECONDS) as client:
            return await getattr(client, call)(path, *body, **options)

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("subresource", "patch", "refusal"),
    [
        pytest.param("", {"metadata": {"labels": {"a": "b"}}}, "only these labels", id="label"),
        pytest.param(
            "", {"metadata": {"labels": {"kubernetes.io/hostname": None}}}, "only these labels", id="no label"
        ),
        pytest.param(
            "", {"metadata": {"labels": {SCHEDULER_LABEL: "1"}}}, "only on control planes", id="mark"
        ),
        pytest.param(
            "", {"metadata": {"annotations": {"a": "b"}}}, "only these annotations", id="annotation"
        ),
        pytest.param("", {"spec": {"unschedulable": True}}, "and remove the taint", id="cordon"),
        pytest.param(
            "",
            {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
            "and remove the taint",
            id="taint",
        ),
        pytest.param(
            "/status", {"status": {"capacity": {"cpu": "1k"}}}, "only remove gpushare.io", id="more cpu"
        ),
        pytest.param(
            "/status", {"status": {"capacity": {"cpu": None}}}, "only remove gpushare.io", id="no cpu"
        ),
        pytest.param(
            "/status", {"status": {"capacity": {"gpushare.io/memory": "1k"}}}, "only remove", id="more units"
        ),
        pytest.param(
            "/status",
            {"status": {"capacity": {"aliyun.com/gpu-count": "8"}}},
            "only remove",
            id="the number of cards of a dialect that the node does not speak",
        ),
        pytest.param(
            "/status", {"status": {"addresses": []}}, "only capacity and allocatable", id="addresses"
        ),
        *(
            pytest.param("/status", {"status": {field: value}}, "only capacity and allocatable", id=field)
            for field, value in (
                ("phase", "Terminated"),
                ("features", {"supplementalGroupsPolicy": False}),
                ("runtimeHandlers", [{"name": "forged"}]),
            )
        ),
        pytest.param(
            "/status", {"metadata": {"labels": {"a": "b"}}}, "only these labels", id="label by status"
        ),
    ],
)
def test_the_operators_account_changes_of_nodes_only_what_is_ours(
    cluster: LocalCluster, subresource: str, patch: Any, refusal: str
) -> None:
    with pytest.raises(ApiError, match=refusal):
        as_operator(cluster, "merge", f"{NODES}/gpu-2{subresource}", patch)


def test_the_operators_account_declares_no_features_of_nodes(cluster: LocalCluster) -> None:
    """Servers before Kubernetes 1.35 drop the field: they do not know it."""
    patch = {"status": {"declaredFeatures": ["Forged"]}}
    if cluster.kubernetes >= Minor(1, 35, 0):
        with pytest.raises(ApiError, match="only capacity and allocatable"):
            as_operator(cluster, "merge", f"{NODES}/gpu-2/status", patch)
    else:
        kept = as_operator(cluster, "merge", f"{NODES}/gpu-2/status", patch)
        assert "declaredFeatures" not in kept["status"]


def test_the_operators_account_marks_hosts_that_people_have_labelled_for_backend_external(
    cluster: LocalCluster,
) -> None:
    """They need be no control planes; and hostctl is not sent there: the mark says so."""
    cluster.kubectl("label", "node", "gpu-2", f"{EXTERNAL_SCHEDULER_LABEL}=")

    def mark(value: str) -> None:
        patch = {"metadata": {"labels": {SCHEDULER_LABEL: value}}}
        as_operator(cluster, "merge", f"{NODES}/gpu-2", patch, dry_run=True)

    mark("external")
    with pytest.raises(ApiError, match="only on control planes, and with the value 'external'"):
        mark("1")
    cluster.kubectl("label", "node", "gpu-2", f"{EXTERNAL_SCHEDULER_LABEL}-")


def test_the_operator_runs_on_a_control_plane(cluster: LocalCluster) -> None:
    pods = get(cluster, f"/api/v1/namespaces/{SYSTEM}/pods")["items"]
    (operator,) = [pod for pod in pods if pod["metadata"]["name"].startswith("gpushare-operator")]
    assert operator["spec"]["nodeName"].startswith("control-plane")


def test_so_does_the_one_that_replaces_it(cluster: LocalCluster) -> None:
    """It is placed while the other one still ends there."""
    labels = "app.kubernetes.io/name=gpushare,app.kubernetes.io/component=operator"
    (before,) = [item for item in get(cluster, PODS.format(namespace=SYSTEM))["items"] if is_operator(item)]
    cluster.kubectl("delete", "pods", "-n", SYSTEM, "-l", labels, "--wait=false")
    placed = watch_until(
        cluster,
        PODS.format(namespace=SYSTEM),
        lambda pods: any(is_operator(pod) and replaces(pod, before) for pod in pods),
        what="another operator is placed",
    )
    (after,) = [pod for pod in placed if is_operator(pod) and replaces(pod, before)]
    assert after["spec"]["nodeName"].startswith("control-plane")
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")


def is_operator(pod: Json) -> bool:
    return bool(pod["metadata"]["labels"].get(COMPONENT_LABEL) == "operator")


def replaces(pod: Json, before: Json) -> bool:
    return bool(pod["metadata"]["uid"] != before["metadata"]["uid"] and pod["spec"].get("nodeName"))


def test_an_overlay_with_another_namespace_and_image_is_followed(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    base = os.path.relpath(ROOT / "manifests", tmp_path.resolve())
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "shared-cards",
        "resources": [base],
        "images": [{"name": "gpushare", "newName": "registry.example/gpushare", "newTag": "9"}],
    }
    (tmp_path / "kustomization.yaml").write_text(json.dumps(overlay))
    rendered = cluster.kubectl("kustomize", str(tmp_path.resolve()))
    assert SYSTEM not in rendered
    assert rendered.count("registry.example/gpushare:9") == 1
    assert "gpushare:0.1.0" not in rendered
    assert "namespace: volcano-system" in rendered, "the accounts of others are where they are"
