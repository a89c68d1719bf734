"""What happens to the scheduler's connection while a policy lives: upgrades, another port, a webhook."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.observe import PODS, POLICIES, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.test_lifecycle import CONTROL_PLANE, MANIFEST, edit_manifest
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.kube import paths
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

OTHER_PORT = 12000
JOBS = paths.jobs(SYSTEM)


@pytest.fixture
def connected(product: Product) -> Iterator[None]:
    """A policy on one node."""
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    yield
    product.delete("default")


def condition(policies: Any, kind: str) -> dict[str, str]:
    found = [each for item in policies for each in item.get("status", {}).get("conditions", ())]
    return next((each for each in found if each["type"] == kind), {})


def await_reason(cluster: LocalCluster, kind: str, reason: str, *, seconds: float = 120.0) -> str:
    """Wait until a policy's condition gives ``reason``; return its message."""
    seen = watch_until(
        cluster,
        POLICIES,
        lambda policies: condition(policies, kind).get("reason") == reason,
        what=f"{kind} because of {reason}",
        seconds=seconds,
        describe=lambda policies: [condition(policies, each) for each in (kind, "Degraded")],
    )
    return condition(seen, kind)["message"]


@pytest.mark.usefixtures("connected")
def test_the_mark_of_a_control_plane_is_one_that_no_kubelet_may_set(cluster: LocalCluster) -> None:
    node = get(cluster, f"{paths.NODES}/{CONTROL_PLANE}")
    ours = [key for key in node["metadata"]["labels"] if "gpushare" in key]
    assert ours == [SCHEDULER_LABEL]


def test_an_upgrade_that_undoes_the_edit_is_noticed_and_edited_again(
    cluster: LocalCluster, product: Product
) -> None:
    manifest = cluster.node_path(CONTROL_PLANE, MANIFEST)
    before = manifest.read_bytes()
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    edit_manifest(cluster, before)
    message = await_reason(cluster, "SchedulerConfigured", "ConnectionLost", seconds=300)
    assert f"{CONTROL_PLANE}: its kube-scheduler runs without our configuration" in message
    product.await_ready("default")
    assert b"/etc/kubernetes/gpushare/" in manifest.read_bytes()
    assert "ConnectionLost" in cluster.kubectl("describe", "gpusharepolicy", "default")
    product.delete("default")
    assert manifest.read_bytes() == before


@pytest.mark.usefixtures("connected")
def test_another_port_is_taken_over_and_the_former_one_left(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    moved = policy("default", nodes=["gpu-1"])
    moved["spec"]["scheduler"] = {"extenderPort": OTHER_PORT}
    product.apply(moved)
    product.await_ready("default")

    def listens() -> list[str]:
        extender = get(cluster, f"{paths.daemon_sets(SYSTEM)}/gpushare-extender")
        (container,) = extender["spec"]["template"]["spec"]["containers"]
        given = container["args"]
        return [given[place + 1] for place, option in enumerate(given) if option == "--listen"]

    wait_until("only the new port is left", lambda: listens() == [f"127.0.0.1:{OTHER_PORT}"], timeout=180)
    product.await_ready("default")
    create(cluster, namespace, [pod("shares", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(each) for each in pods),
        what="a pod that shares a card runs",
    )


@pytest.mark.usefixtures("connected")
def test_all_programs_follow_kubectl_set_image(cluster: LocalCluster, product: Product) -> None:
    """The operator reads the Deployment's image, and the admission policy, too."""
    set_image(cluster, "gpushare:0.2.0")
    set_image(cluster, "gpushare:0.1.0")
    product.await_ready("default")


def set_image(cluster: LocalCluster, image: str) -> None:
    cluster.kubectl("set", "image", "deployment/gpushare-operator", f"operator={image}", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=120s")
    watch_until(
        cluster,
        paths.daemon_sets(SYSTEM),
        lambda daemon_sets: {image_of(each) for each in daemon_sets} == {image},
        what=f"everything runs {image}",
        describe=lambda daemon_sets: [image_of(each) for each in daemon_sets],
    )


def image_of(daemon_set: Any) -> str:
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def test_a_policy_that_comes_back_while_another_one_goes_is_in_force_at_once(
    cluster: LocalCluster, product: Product
) -> None:
    """hostctl meets no extender with the keys of before."""
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    cluster.kubectl("delete", "gpusharepolicy", "default", "--wait=false")
    watch_until(
        cluster,
        JOBS,
        lambda jobs: any("-restore-" in each["metadata"]["name"] and is_complete(each) for each in jobs),
        what="the scheduler is restored",
        seconds=240,
    )
    product.apply(policy("again", nodes=["gpu-2"]))
    product.await_ready("again")
    cluster.kubectl("wait", "--for=delete", "gpusharepolicy/default", "--timeout=180s")
    product.delete("again")


def is_complete(job: Any) -> bool:
    conditions = job.get("status", {}).get("conditions", ())
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)


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
            timeout=30,
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
    assert "exclude the namespace of gpushare from it" in message
    assert "WorkloadsRefused" in cluster.kubectl("describe", "gpusharepolicy", "default")
    stop_meddling(cluster)
    product.await_ready("default")
    product.delete("default")
