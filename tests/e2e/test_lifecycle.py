"""A policy comes and goes, and the cluster is as it was: labels, objects, and the control plane's files."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST, edit_manifest, files
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import NODES, PODS, SHARE_NODES, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, named, policy
from tests.e2e.traces import OURS, traces
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

CAPACITY = ("capacity", "allocatable")
FORGETTING = "gpu-3"
"""A node that only the first policy has: from its end on, while the other tests run, its kubelet forgets. No
test here may end the operator: a new one tries at once, and then five minutes later."""
OTHERS = [name for name in WORKERS if name != FORGETTING]


def await_nothing_offered(cluster: LocalCluster) -> None:
    """For five minutes the kubelet remembers the resource, with nothing allocatable."""
    watch_until(
        cluster,
        NODES,
        lambda nodes: (
            not any(
                OURS in name and amount != "0"
                for node in nodes
                for name, amount in node["status"]["allocatable"].items()
            )
        ),
        what="no node offers our resource",
    )


def await_no_capacity(cluster: LocalCluster, node: str) -> None:
    """When the kubelet has forgotten the resource, the operator takes the zero out that it leaves."""
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(
            named(present, node) and not any(OURS in str(present["status"][part]) for part in CAPACITY)
            for present in nodes
        ),
        what=f"{node} does not show our resource",
        seconds=600,
        describe=lambda nodes: [node["status"]["capacity"] for node in nodes],
    )


def with_own_config(manifest: bytes) -> bytes:
    """The manifest as of an administrator who gave the scheduler a configuration file."""
    return (
        manifest.replace(
            b"    - --kubeconfig=/etc/kubernetes/scheduler.conf\n",
            b"    - --config=/etc/kubernetes/own/scheduler.yaml # ours, do not touch\n",
        )
        .replace(
            b"    volumeMounts:\n",
            b"    volumeMounts:\n    - {mountPath: /etc/kubernetes/own, name: own, readOnly: true}\n",
        )
        .replace(b"  volumes:\n", b"  volumes:\n  - hostPath: {path: /etc/kubernetes/own}\n    name: own\n")
    )


OWN_CONFIG = """\
# A configuration of the administrator's.
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
leaderElection: {leaderElect: true}
profiles:
- schedulerName: default-scheduler
- schedulerName: second
"""


@pytest.fixture
def own_config(cluster: LocalCluster) -> Iterator[None]:
    """The scheduler runs with a configuration file of the administrator's during the test."""
    path = cluster.node_path(CONTROL_PLANE, MANIFEST)
    before = path.read_bytes()
    folder = cluster.node_path(CONTROL_PLANE, "/etc/kubernetes/own")
    folder.mkdir()
    (folder / "scheduler.yaml").write_text(OWN_CONFIG)
    edited = with_own_config(before)
    assert edited.count(b"own") >= 4, "the manifest no longer looks as this test expects"
    edit_manifest(cluster, edited)
    yield
    edit_manifest(cluster, before)
    (folder / "scheduler.yaml").unlink()
    folder.rmdir()


def schedules(
    cluster: LocalCluster, namespace: str, name: str, *, scheduler: str = "default-scheduler"
) -> None:
    """An ordinary pod finds its node."""
    body = pod(name, {"main": 0})
    body["spec"]["schedulerName"] = scheduler
    create(cluster, namespace, [body])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"ordinary pod {name} runs",
    )


def scheduler_pod(cluster: LocalCluster) -> Any:
    return get(cluster, f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{CONTROL_PLANE}")


def come_and_go(cluster: LocalCluster, product: Product, namespace: str, nodes: list[str]) -> None:
    """Apply a policy and delete it, with pods scheduled before, in between and after."""
    untouched, files_before = traces(cluster), files(cluster)
    schedules(cluster, namespace, "before")
    product.apply(policy("default", nodes=nodes))
    schedules(cluster, namespace, "meanwhile")
    product.await_ready("default")
    assert files(cluster) != files_before
    schedules(cluster, namespace, "during")
    create(cluster, namespace, [pod("shares", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(pods) == 4 and all(is_running(pod) for pod in pods),
        what="all pods run",
    )
    product.delete("default")
    assert files(cluster) == files_before
    assert traces(cluster) == untouched
    await_nothing_offered(cluster)
    schedules(cluster, namespace, "after")
    running = get(cluster, PODS.format(namespace=namespace))["items"]
    assert all(is_running(pod) for pod in running)
    assert len(running) == 5


def test_without_a_policy_nothing_of_ours_is_anywhere(cluster: LocalCluster, product: Product) -> None:
    assert not any(traces(cluster).values())
    assert product.cluster.node_path(CONTROL_PLANE, "/etc/kubernetes/gpushare").exists() is False


def test_everything_is_restored_byte_for_byte(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    come_and_go(cluster, product, namespace, WORKERS)


@pytest.mark.usefixtures("own_config")
def test_a_configuration_file_of_the_administrators_is_kept_and_restored(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    schedules(cluster, namespace, "second-before", scheduler="second")
    cluster.kubectl("delete", "pod", "second-before", "-n", namespace)
    come_and_go(cluster, product, namespace, OTHERS)


def test_what_somebody_else_changed_meanwhile_stays(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    before = cluster.node_path(CONTROL_PLANE, MANIFEST).read_bytes()
    product.apply(policy("default", nodes=OTHERS))
    product.await_ready("default")
    between = cluster.node_path(CONTROL_PLANE, MANIFEST).read_bytes()
    edit_manifest(
        cluster, between.replace(b"    - --leader-elect=true\n", b"    - --leader-elect=true\n    - --v=1\n")
    )
    product.delete("default")
    after = cluster.node_path(CONTROL_PLANE, MANIFEST).read_bytes()
    assert after == before.replace(
        b"    - --leader-elect=true\n", b"    - --leader-elect=true\n    - --v=1\n"
    )
    assert cluster.node_path(CONTROL_PLANE, "/etc/kubernetes/gpushare").exists() is False
    edit_manifest(cluster, before)
    schedules(cluster, namespace, "after")


def test_two_policies_never_share_a_node(cluster: LocalCluster, product: Product) -> None:
    product.apply(policy("default", nodes=["gpu-1"]))
    product.await_ready("default")
    product.apply(policy("later", nodes=["gpu-1", "gpu-2"]))
    conflicted = watch_until(
        cluster,
        "/apis/gpushare.io/v1alpha1/gpusharepolicies",
        lambda policies: any("gpu-1" in conflict(policy) for policy in policies),
        what="the later policy says which node it lost",
        describe=lambda policies: [json.dumps(policy.get("status")) for policy in policies],
    )
    assert len(conflicted) == 2
    owners = {item["metadata"]["name"]: item["spec"]["policy"] for item in get(cluster, SHARE_NODES)["items"]}
    assert owners["gpu-1"] == "default"
    product.delete("default")
    product.share_node(
        "gpu-1", lambda node: node["spec"]["policy"] == "later", what="the later policy takes over"
    )
    product.delete("later")
    assert not any(traces(cluster).values())


def conflict(policy: Any) -> str:
    conditions = policy.get("status", {}).get("conditions", ())
    return " ".join(
        condition["message"]
        for condition in conditions
        if condition["type"] == "Conflicted" and condition["status"] == "True"
    )


def test_the_kubelets_memory_of_the_resource_ends_for_good(cluster: LocalCluster) -> None:
    """After five minutes, and without a fight: the operator writes to the node once at the end."""
    await_no_capacity(cluster, FORGETTING)
    before = written_by_operator(cluster, FORGETTING)
    time.sleep(15)
    await_no_capacity(cluster, FORGETTING)
    assert written_by_operator(cluster, FORGETTING) == before


def written_by_operator(cluster: LocalCluster, node: str) -> list[str]:
    """When the operator last wrote to the node."""
    return [
        entry["time"]
        for entry in get(cluster, f"{NODES}/{node}")["metadata"].get("managedFields", ())
        if entry["manager"] == "gpushare-operator"
    ]
