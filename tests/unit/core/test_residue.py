"""What is left after the last policy, and what may stay."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gpushare_core.residue import HostFile, residue
from gpushare_core.text.json_object import Json


def item(kind: str, name: str, *, namespace: str = "", **rest: Any) -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **rest.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **rest}


def node(**metadata: Any) -> Json:
    return item("Node", "gpu-1", metadata=metadata)


MANAGED = {"labels": {"app.kubernetes.io/managed-by": "gpushare-operator"}}
TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/gpushare"

LEFT = [
    pytest.param(item("GPUSharePolicy", "p"), "kubectl delete gpusharepolicy p", id="a policy"),
    pytest.param(
        item("GPUSharePolicy", "p", metadata={"deletionTimestamp": "2026-11-21T10:00:00Z"}),
        "its condition Ready says what",
        id="a policy that goes",
    ),
    pytest.param(item("GPUShareNode", "gpu-1"), "kubectl delete gpusharenode gpu-1", id="a GPUShareNode"),
    pytest.param(
        node(labels={"gpushare.io/policy": "p"}), "kubectl label node gpu-1 gpushare.io/policy-", id="a label"
    ),
    pytest.param(
        node(labels={"gpushare.io.node-restriction.kubernetes.io/scheduler": "x"}),
        "node-restriction.kubernetes.io/scheduler-",
        id="the mark of a control plane",
    ),
    pytest.param(node(annotations={"gpushare.io/x": "y"}), "kubectl annotate node gpu-1", id="an annotation"),
    pytest.param(
        item("Node", "gpu-1", spec={"taints": [{"key": TAINT}]}), "kubectl taint node gpu-1", id="a taint"
    ),
    pytest.param(
        item("Node", "gpu-1", status={"capacity": {"gpushare.io/memory": "16"}}),
        "/status/capacity/gpushare.io~1memory",
        id="capacity",
    ),
    pytest.param(
        item("Node", "gpu-1", status={"allocatable": {"aliyun.com/gpu-mem": "0"}}),
        "0 of aliyun.com/gpu-mem",
        id="the last zero of a dialect",
    ),
    pytest.param(
        item("DaemonSet", "gpushare-plugin-p", namespace="s", metadata=MANAGED),
        "kubectl delete daemonset gpushare-plugin-p -n s",
        id="a DaemonSet",
    ),
    pytest.param(item("Job", "j", namespace="s", metadata=MANAGED), "kubectl delete job j", id="a Job"),
    pytest.param(
        item("ConfigMap", "gpushare-volcano-backup", namespace="v", metadata=MANAGED),
        "kubectl delete configmap",
        id="a backup",
    ),
    pytest.param(
        item("Deployment", "gpushare-scheduler", namespace="s"), "kubectl delete deployment", id="a scheduler"
    ),
    pytest.param(item("Pod", "x", namespace="s", metadata=MANAGED), "goes with its owner", id="a pod"),
    pytest.param(
        item("ConfigMap", "foreign", metadata={"managedFields": [{"manager": "gpushare-operator"}]}),
        "compare it with what it was before",
        id="an object that we edited",
    ),
]

WRITTEN = [
    {
        "manager": "gpushare-operator",
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:volcano.sh/gpu-unhealthy-ids": {}}}},
    }
]
COUNTED = [
    {
        "manager": "gpushare-operator",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:capacity": {"f:aliyun.com/gpu-count": {}}}},
    }
]
LEFT += [
    pytest.param(
        node(annotations={"volcano.sh/gpu-unhealthy-ids": "1"}, managedFields=WRITTEN),
        "volcano.sh/gpu-unhealthy-ids",
        id="closed cards in the words of a dialect",
    ),
    pytest.param(
        item(
            "Node",
            "gpu-1",
            status={"capacity": {"aliyun.com/gpu-count": "8"}},
            metadata={"managedFields": COUNTED},
        ),
        "8 of aliyun.com/gpu-count",
        id="a number of cards in the words of a dialect",
    ),
]

ALLOWED = [
    pytest.param(item("CustomResourceDefinition", "gpusharepolicies.gpushare.io"), id="a CRD"),
    pytest.param(item("Deployment", "gpushare-operator", namespace="s"), id="the operator"),
    pytest.param(item("Lease", "gpushare-extender", namespace="s"), id="a Lease of the installation"),
    pytest.param(
        item("Pod", "job", metadata={"annotations": {"gpushare.io/allocation": "{}"}}), id="a pod that runs"
    ),
    pytest.param(
        node(labels={"gpushare.io.node-restriction.kubernetes.io/kube-scheduler": ""}),
        id="people's own label",
    ),
    pytest.param(node(labels={"gpushare": "true"}), id="another system's label"),
    pytest.param(
        item("Node", "gpu-1", status={"capacity": {"aliyun.com/gpu-mem": "16", "nvidia.com/gpu": "0"}}),
        id="another system's capacity",
    ),
]


@pytest.mark.parametrize(("left", "advice"), LEFT)
def test_what_is_left_is_named_with_what_to_do(left: Json, advice: str) -> None:
    (found,) = residue([left], {})
    assert advice in found.sentence
    assert left["metadata"]["name"] in found.where


@pytest.mark.parametrize("kept", ALLOWED)
def test_what_may_stay_is_not_named(kept: Json) -> None:
    assert residue([kept], {}) == []


def test_labels_in_the_words_of_a_dialect_are_ours_where_that_is_recorded() -> None:
    found = residue([node(labels={"gpushare": "true", "gpushare.io/dialect": "aliyun.com"})], {})
    assert len(found) == 2
    assert "in the words of aliyun.com" in found[0].sentence


@pytest.mark.parametrize(
    ("file", "is_left"),
    [
        (HostFile("etc/kubernetes/gpushare/state.json"), True),
        (HostFile("etc/kubernetes/manifests/kube-scheduler.yaml", mentions_us=True), True),
        (HostFile("etc/kubernetes/manifests/kube-scheduler.yaml"), False),
        (HostFile("var/lib/kubelet/device-plugins/gpushare-gpushare.io-memory.sock"), True),
        (HostFile("var/lib/kubelet/device-plugins/.gpushare-01234567"), True),
        (HostFile("var/lib/gpushare/isolation/limits/0123456789abcdef0123456789abcdef"), True),
        (HostFile("var/lib/gpushare/isolation/libgpushare-cuda.so"), True),
        (HostFile("var/lib/gpushare/isolation"), False),
        (HostFile("var/lib/gpushare/inventory.yaml", mentions_us=True), False),
        (HostFile("var/lib/kubelet/device-plugins/kubelet.sock"), False),
        (HostFile("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"), False),
        (HostFile("etc/gpushare/inventory.yaml", mentions_us=True), False),
        (HostFile("var/log/gpushare/gpushare-plugin.log"), False),
    ],
)
def test_files(file: HostFile, is_left: bool) -> None:  # noqa: FBT001
    found = residue([], {"gpu-1": [file]})
    assert bool(found) is is_left
    assert all(trace.where == f"host gpu-1, /{file.path}" for trace in found)


MANIFESTS = Path(__file__).resolve().parents[3] / "manifests"
INSTALLED = [
    body
    for file in sorted(MANIFESTS.rglob("*.yaml"))
    if file.name != "kustomization.yaml"
    for body in yaml.safe_load_all(file.read_text())
    if body and body.get("kind") != "CustomResourceDefinition"
]


@pytest.mark.parametrize(
    "installed", INSTALLED, ids=lambda body: f"{body['kind']} {body['metadata']['name']}"
)
def test_what_is_installed_may_stay(installed: Json) -> None:
    """Also where manifests/dedicated/ is: its account, roles and Lease are called as the Deployment is."""
    assert residue([installed], {}) == []


def test_another_system_s_words_on_a_node_are_its_own() -> None:
    annotations, capacity = {"volcano.sh/gpu-unhealthy-ids": "1"}, {"aliyun.com/gpu-count": "8"}
    assert residue([node(annotations=annotations) | {"status": {"capacity": capacity}}], {}) == []
    emptied = [{"manager": "gpushare-operator", "fieldsV1": {"f:metadata": {"f:annotations": {".": {}}}}}]
    assert residue([node(annotations=annotations, managedFields=emptied)], {}) == []
