"""What happens to the scheduler's connection while policies come: upgrades, another policy, a webhook."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST, edit_manifest
from tests.e2e.observe import PODS, POLICIES, watch_until
from tests.e2e.product import SYSTEM, Product, policy

from gpushare_core.kube import paths
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

JOBS = paths.jobs(SYSTEM)


def condition(policies: Any, kind: str) -> dict[str, str]:
    found = [condition for item in policies for condition in item.get("status", {}).get("conditions", ())]
    return next((condition for condition in found if condition["type"] == kind), {})


def await_reason(cluster: LocalCluster, kind: str, reason: str, *, seconds: float = 240.0) -> str:
    """Wait until a policy's condition gives ``reason``; return its message."""
    seen = watch_until(
        cluster,
        POLICIES,
        lambda policies: condition(policies, kind).get("reason") == reason,
        what=f"{kind} because of {reason}",
        seconds=seconds,
        describe=lambda policies: [condition(policies, type_) for type_ in (kind, "Degraded")],
    )
    return condition(seen, kind)["message"]


def test_an_upgrade_that_undoes_the_edit_is_noticed_and_edited_again(
    cluster: LocalCluster, product: Product
) -> None:
    manifest = cluster.node_path(CONTROL_PLANE, MANIFEST)
    before = manifest.read_bytes()
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    edit_manifest(cluster, before)
    message = await_reason(cluster, "SchedulerConfigured", "ConnectionLost", seconds=300)
    assert f"{CONTROL_PLANE}: its kube-scheduler runs without gpushare's configuration" in message
    product.await_ready("default")
    assert b"/etc/kubernetes/gpushare/" in manifest.read_bytes()
    assert "ConnectionLost" in cluster.kubectl("describe", "gpusharepolicy", "default")
    product.delete("default")
    assert manifest.read_bytes() == before


def test_a_policy_that_comes_back_while_another_one_goes_is_in_force_at_once(
    cluster: LocalCluster, product: Product
) -> None:
    """hostctl meets no extender with the keys of before."""
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    cluster.kubectl("delete", "gpusharepolicy", "default", "--wait=false")
    watch_until(
        cluster,
        PODS.format(namespace=SYSTEM),
        lambda pods: any("-restore-" in pod["metadata"]["name"] and has_succeeded(pod) for pod in pods),
        what="the scheduler is restored",
        seconds=240,
    )
    product.apply(policy("again", nodes=["gpu-2"]))
    product.await_ready("again")
    cluster.kubectl("wait", "--for=delete", "gpusharepolicy/default", "--timeout=240s")
    product.delete("again")


def has_succeeded(pod: Any) -> bool:
    """Whether hostctl has: its Job goes at once then, often before it is complete."""
    containers = pod.get("status", {}).get("containerStatuses", ())
    return any(container["state"].get("terminated", {}).get("exitCode") == 0 for container in containers)


RULE = {
    "apiGroups": ["apps"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["daemonsets"],
}
ADD_A_VARIABLE = """
Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
  containers: object.spec.template.spec.containers.map(each, Object.spec.template.spec.containers{
    name: each.name,
    env: [Object.spec.template.spec.containers.env{name: 'TRACING', value: 'on'}]})}}}}
"""
MUTATION = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": ADD_A_VARIABLE}}
TRACING = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "tracing"},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [RULE]},
            "mutations": [MUTATION],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "tracing"},
        "spec": {"policyName": "tracing"},
    },
)
"""Somebody's rule: it adds a variable to every DaemonSet, ours among them."""
PROBE = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        },
    },
}


@pytest.fixture
def meddling(cluster: LocalCluster) -> Iterator[None]:
    """Somebody's rule is in force."""
    try:
        for body in TRACING:
            cluster.kubectl("create", "-f", "-", stdin=json.dumps(body))
        dry_run = ("create", "--dry-run=server", "-o", "json", "-f", "-")
        wait_until(
            "the rule is in force",
            lambda: "TRACING" in cluster.kubectl(*dry_run, stdin=json.dumps(PROBE)),
        )
        yield
    finally:
        stop_meddling(cluster)


def stop_meddling(cluster: LocalCluster) -> None:
    for body in reversed(TRACING):
        cluster.kubectl("delete", str(body["kind"]).lower(), "tracing", "--ignore-not-found")


@pytest.mark.usefixtures("meddling")
def test_what_another_webhook_adds_is_refused_and_the_condition_says_what_to_do(
    cluster: LocalCluster, product: Product
) -> None:
    product.apply(policy("default", nodes=["gpu-1"]))
    message = await_reason(cluster, "Degraded", "WorkloadsRefused")
    assert "here are the variables: " in message
    assert "TRACING" in message
    assert "exclude gpushare's namespace from it" in message
    assert "WorkloadsRefused" in cluster.kubectl("describe", "gpusharepolicy", "default")
    stop_meddling(cluster)
    product.await_ready("default")
    product.delete("default")
