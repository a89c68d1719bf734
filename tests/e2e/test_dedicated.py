"""A second kube-scheduler beside the cluster's: as on a managed control plane, which nobody can edit.

With engine Extender, which every minor has; test_dedicated_engine.py has the other one.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.books import read_books
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST
from tests.e2e.fixtures import await_agreement
from tests.e2e.kubernetes_features import MUTATING_POLICY, is_on, skip_unless_pods_are_pointed
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import ROOT, SYSTEM, Product, policy
from tests.e2e.test_scheduler_reconnection import JOBS, await_reason
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

OURS = "gpushare-scheduler"
MANIFESTS = str(ROOT / "manifests" / "dedicated")


def with_backend(backend: str) -> Json:
    body = policy("default", nodes=["gpu-1"], cards=2)
    engine = {"engine": "Extender"} if backend == "Dedicated" else {}
    body["spec"]["scheduler"] = {"backend": backend, **engine}
    return body


def points_pods(cluster: LocalCluster) -> bool:
    """Returns whether the server can point pods at the scheduler; else each has to name it."""
    return is_on(MUTATING_POLICY, cluster.kubernetes)


@pytest.fixture
def rights(cluster: LocalCluster, product: Product) -> Iterator[None]:
    """What an administrator installs besides, for this backend."""
    del product
    manifests = MANIFESTS if points_pods(cluster) else f"{MANIFESTS}/scheduler"
    cluster.kubectl("apply", "-k", manifests)
    yield
    cluster.kubectl("delete", "gpusharepolicy", "--all", "--timeout=240s")
    cluster.kubectl("delete", "-k", manifests)


def await_running(cluster: LocalCluster, namespace: str, *names: str) -> dict[str, Json]:
    """Wait until these pods run; return all."""
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: {*names} <= {pod["metadata"]["name"] for pod in pods if is_running(pod)},
        what=f"{', '.join(names)} run",
        describe=lambda pods: [(pod["metadata"]["name"], pod["status"]) for pod in pods],
    )
    return {pod["metadata"]["name"]: pod for pod in pods}


def schedulers_of(pods: dict[str, Json]) -> dict[str, str]:
    return {name: pod["spec"]["schedulerName"] for name, pod in pods.items()}


def asking_pod(name: str, units: int) -> Json:
    return pod(name, {"main": units})


def asking_ours(cluster: LocalCluster, name: str, units: int) -> Json:
    """Asks as a user of this backend has to."""
    body = asking_pod(name, units)
    return body if points_pods(cluster) else with_scheduler(body, OURS)


def with_scheduler(body: Json, scheduler: str) -> Json:
    return {**body, "spec": {**body["spec"], "schedulerName": scheduler}}


def condition(cluster: LocalCluster, kind: str) -> Any:
    conditions = get(cluster, f"{paths.POLICIES}/default")["status"]["conditions"]
    return next(condition for condition in conditions if condition["type"] == kind)


def await_message(cluster: LocalCluster, text: str) -> None:
    """The operator's own watch tells it, a moment later, which admission policies come and go."""
    wait_until(
        f"SchedulerConfigured says: {text}",
        lambda: text in condition(cluster, "SchedulerConfigured")["message"],
        explain=lambda: str(condition(cluster, "SchedulerConfigured")),
    )


@pytest.mark.usefixtures("rights")
def test_a_live_policy_moves_to_the_clusters_own_scheduler_and_back(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    manifest = cluster.node_path(CONTROL_PLANE, MANIFEST)
    before = manifest.read_bytes()
    product.apply(with_backend("Dedicated"))
    ready = product.await_ready("default")
    assert (ready["status"]["backend"], ready["status"]["engine"]) == ("Dedicated", "Extender")
    version = cluster.kubernetes.version
    how = "pods that ask for cards get" if points_pods(cluster) else "the API server has no MutatingAdmission"
    await_message(cluster, f"kube-scheduler:{version}, engine Extender) places pods; {how}")
    pointed = OURS if points_pods(cluster) else "default-scheduler"
    await_pointed(cluster, namespace, pointed)
    create(cluster, namespace, [asking_ours(cluster, "first", 10), asking_ours(cluster, "never", 17)])
    first = await_running(cluster, namespace, "first")["first"]
    assert manifest.read_bytes() == before

    product.apply(with_backend("KubeScheduler"))
    product.await_ready("default")
    assert manifest.read_bytes() != before
    wait_until("the second scheduler is gone", lambda: deployments(cluster) == ["gpushare-operator"])
    message = await_reason(cluster, "Degraded", "PodsNotScheduled")
    assert message.startswith(f"nobody places 1 pod with schedulerName: {OURS} ({namespace}/never) any more")
    cluster.kubectl("delete", "pod", "-n", namespace, "never")
    await_pointed(cluster, namespace, "default-scheduler")
    create(cluster, namespace, [asking_pod("second", 10)])
    await_running(cluster, namespace, "first", "second")

    product.apply(with_backend("Dedicated"))
    product.await_ready("default")
    assert manifest.read_bytes() == before
    wait_until("no Job of hostctl is left", lambda: not get(cluster, JOBS)["items"])
    wait_until(
        "the control plane has lost its label", lambda: SCHEDULER_LABEL not in control_plane_labels(cluster)
    )
    await_pointed(cluster, namespace, pointed)
    create(cluster, namespace, [asking_ours(cluster, "third", 6)])
    pods = await_running(cluster, namespace, "first", "second", "third")
    assert schedulers_of(pods) == {"first": OURS, "second": "default-scheduler", "third": OURS}
    assert pods["first"]["metadata"]["annotations"] == first["metadata"]["annotations"]
    assert container_of(pods["first"]) == container_of(first)
    await_agreement(cluster, namespace)
    assert len(read_books(cluster, namespace).status) == 3

    product.delete("default")
    assert deployments(cluster) == ["gpushare-operator"]
    await_pointed(cluster, namespace, "default-scheduler")


def await_pointed(cluster: LocalCluster, namespace: str, scheduler: str) -> None:
    """The API server's admission learns of policies a moment after they were written, or after it started."""
    wait_until(
        f"new pods get schedulerName: {scheduler}",
        lambda: scheduler_of_new(cluster, namespace) == scheduler,
        explain=lambda: scheduler_of_new(cluster, namespace),
    )


def scheduler_of_new(cluster: LocalCluster, namespace: str) -> str:
    """Returns the scheduler of a pod that would be made now."""
    options = ("--dry-run=server", "-o", "json", "-n", namespace, "-f", "-")
    made = cluster.kubectl("create", *options, stdin=json.dumps(asking_pod("later", 4)))
    return str(json.loads(made)["spec"]["schedulerName"])


def control_plane_labels(cluster: LocalCluster) -> Json:
    found: Json = get(cluster, f"{paths.NODES}/{CONTROL_PLANE}")["metadata"]["labels"]
    return found


def container_of(pod: Json) -> tuple[str, int]:
    (status,) = pod["status"]["containerStatuses"]
    return str(status["containerID"]), int(status["restartCount"])


def deployments(cluster: LocalCluster) -> list[str]:
    return [item["metadata"]["name"] for item in get(cluster, paths.deployments(SYSTEM))["items"]]


def why_waiting(pod: Json) -> str:
    """What the scheduler says of a pod that it refused; empty as long as it said nothing."""
    conditions = pod["status"].get("conditions", ())
    refused = (
        condition
        for condition in conditions
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    )
    return next((str(condition.get("message", "")) for condition in refused), "")


def test_without_the_rights_to_it_the_condition_says_what_to_apply(
    cluster: LocalCluster, product: Product
) -> None:
    product.apply(with_backend("Dedicated"))
    message = await_reason(cluster, "SchedulerConfigured", "RightsMissing")
    assert "kubectl apply -k manifests/dedicated/" in message
    await_reason(cluster, "Degraded", "AsExpected")
    product.delete("default")


@pytest.mark.usefixtures("rights")
def test_pods_come_to_it_by_name_or_by_the_policy_and_others_are_left_alone(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    skip_unless_pods_are_pointed(cluster.kubernetes)
    for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
        cluster.kubectl("delete", kind, OURS)
    product.apply(with_backend("Dedicated"))
    product.await_ready("default")
    await_message(cluster, "kubectl apply -f manifests/dedicated/pods.yaml")
    stray = pod("stray", {"main": 4}, on="nowhere")
    create(cluster, namespace, [with_scheduler(asking_pod("named", 4), OURS), stray])
    await_running(cluster, namespace, "named")
    message = await_reason(cluster, "Degraded", "PodsNotScheduled")
    assert f"1 pod with schedulerName: default-scheduler ({namespace}/stray) by cards" in message

    cluster.kubectl("apply", "-f", f"{MANIFESTS}/pods.yaml")
    await_message(cluster, "ask for cards get its schedulerName")
    await_pointed(cluster, namespace, OURS)
    others = [pod("ordinary", {"main": 0}), with_scheduler(asking_pod("theirs", 4), "somebody-else")]
    create(cluster, namespace, [pod("pointed", {"main": 11}), *others])
    await_running(cluster, namespace, "named", "pointed", "ordinary")
    # The node has 17 units left, and no card more than 16.
    create(cluster, namespace, [pod("too-much", {"main": 17})])
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(why_waiting(pod) for pod in pods if pod["metadata"]["name"] == "too-much"),
        what="too-much is refused",
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    seen = {pod["metadata"]["name"]: pod for pod in pods}
    assert "insufficient GPU memory in one card: asked 17, largest free 16" in why_waiting(seen["too-much"])
    assert schedulers_of(seen) == {
        "named": OURS,
        "pointed": OURS,
        "too-much": OURS,
        "stray": "default-scheduler",
        "ordinary": "default-scheduler",
        "theirs": "somebody-else",
    }

    cluster.kubectl("delete", "pod", "-n", SYSTEM, leader(cluster), "--wait=false")
    create(cluster, namespace, [pod("after", {"main": 16})])
    await_running(cluster, namespace, "after")
    await_agreement(cluster, namespace)
    product.delete("default")


def leader(cluster: LocalCluster) -> str:
    """Which of the two places pods."""
    holder = get(cluster, paths.lease_path(SYSTEM, OURS))["spec"]["holderIdentity"]
    return str(holder).partition("_")[0]
