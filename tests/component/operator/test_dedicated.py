"""Backend Dedicated on servers of several versions: what they serve is asked, never concluded."""

from datetime import timedelta
from typing import Any

import pytest
from tests.fakes.operator_cluster import DEPLOYMENTS, Cluster, Operator, converge

from gpushare_core.kube import paths
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.reconcile import SCHEDULERS

CARDS = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
RULE = {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS}
OURS = "gpushare-scheduler"
NOT_POINTED = "the API server has no MutatingAdmissionPolicy"
POINTED = "pods that ask for cards get its schedulerName"
KINDS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")


def cluster_with(version: str = "v1.36.3", *policies: str, engine: str = "Plugin") -> Cluster:
    """A managed control plane: no node of it is to be seen."""
    cluster = Cluster()
    cluster.serve(version, *policies)
    cluster.add_node("gpu-1")
    cluster.add_node("gpu-2")
    cluster.add_policy("default", RULE, scheduler={"backend": "Dedicated", "engine": engine})
    return cluster


def image_of(cluster: Cluster) -> str:
    """Of the second kube-scheduler."""
    (deployment,) = cluster.api.of(DEPLOYMENTS).values()
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


def kube_scheduler(version: str) -> str:
    return f"registry.k8s.io/kube-scheduler:{version}"


def our_scheduler(minor: str) -> str:
    return f"gpushare-scheduler:{VERSION}-{minor}"


def install_pod_policy(cluster: Cluster, version: str) -> None:
    for kind in KINDS:
        cluster.api.put(f"{paths.ADMISSION}/{version}/{kind}", {"metadata": {"name": OURS}})


def status(cluster: Cluster) -> Any:
    return cluster.api.of(paths.POLICIES)["default"]["status"]


def said(cluster: Cluster, kind: str = "SchedulerConfigured") -> str:
    (found,) = [condition for condition in status(cluster)["conditions"] if condition["type"] == kind]
    return f"{found['status']} {found['reason']}: {found['message']}"


async def looked_again(cluster: Cluster, operator: Operator) -> None:
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)


def waiting(name: str, scheduler: str) -> Json:
    container = {"name": "main", "resources": {"limits": {"gpushare.io/memory": "4"}}}
    return {
        "metadata": {"namespace": "a", "name": name},
        "spec": {"containers": [container], "schedulerName": scheduler},
        "status": {"phase": "Pending"},
    }


@pytest.mark.parametrize(
    ("version", "served", "image", "how"),
    [
        pytest.param("v1.32.4", (), kube_scheduler("v1.32.4"), NOT_POINTED, id="1.32"),
        pytest.param("v1.34.1", (), kube_scheduler("v1.34.1"), NOT_POINTED, id="beta, switched off"),
        pytest.param("v1.35.0", ("v1beta1",), our_scheduler("1.35"), POINTED, id="beta"),
        pytest.param("v1.36.3", ("v1", "v1beta1"), our_scheduler("1.36"), POINTED, id="1.36"),
    ],
)
async def test_what_the_server_has_decides_how_pods_come_and_which_engine_places_them(
    version: str, served: tuple[str, ...], image: str, how: str
) -> None:
    cluster = cluster_with(version, *served)
    for result in served:
        install_pod_policy(cluster, result)
    await converge(cluster)
    engine = "Plugin" if OURS in image else "Extender"
    assert image_of(cluster) == image
    assert f"True Configured: {OURS} ({image}, engine {engine}) places pods; {how}" in said(cluster)
    assert ("engine Extender is used in place of Plugin" in said(cluster)) == (engine == "Extender")
    assert (status(cluster)["backend"], status(cluster)["engine"]) == ("Dedicated", engine)


async def test_the_policy_for_pods_is_seen_when_it_comes() -> None:
    cluster = cluster_with("v1.36.3", "v1")
    operator = await converge(cluster)
    assert "kubectl apply -f manifests/dedicated/pods.yaml" in said(cluster)
    install_pod_policy(cluster, "v1")
    await looked_again(cluster, operator)
    assert "pods that ask for cards get its schedulerName" in said(cluster)


@pytest.mark.parametrize(
    ("engine", "before", "after", "image"),
    [
        ("Extender", "v1.35.7-gke.100", "v1.36.0-gke.7", kube_scheduler("v1.36.0")),
        ("Plugin", "v1.35.7-gke.100", "v1.36.0-gke.7", our_scheduler("1.36")),
        ("Plugin", "v1.37.2", "v1.38.0", our_scheduler("1.37")),
        ("Plugin", "v1.38.0", "v1.39.0", kube_scheduler("v1.39.0")),
        ("Plugin", "v1.34.9", "v1.35.0", our_scheduler("1.35")),
    ],
)
async def test_the_scheduler_follows_an_upgrade_of_the_server(
    engine: str, before: str, after: str, image: str
) -> None:
    cluster = cluster_with(before, engine=engine)
    operator = await converge(cluster)
    cluster.api.of("")["version"]["gitVersion"] = after
    await looked_again(cluster, operator)
    assert image_of(cluster) == image


async def test_another_engine_changes_the_one_deployment_and_nothing_else() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    for engine, image in (("Extender", kube_scheduler("v1.36.3")), ("Plugin", our_scheduler("1.36"))):
        written = len(cluster.api.writes)
        cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"engine": engine}}})
        await converge(cluster, operator)
        assert image_of(cluster) == image
        assert status(cluster)["engine"] == engine
        others = [write for write in cluster.api.writes[written:] if "gpusharepolicies/" not in write]
        assert {write.rpartition("/")[2] for write in others} == {OURS, "events"}


async def test_another_dialect_reaches_the_scheduler() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    cluster.api.change(paths.POLICIES, "default", {"spec": {"dialect": "aliyun.com"}})
    await converge(cluster, operator)
    (deployment,) = cluster.api.of(DEPLOYMENTS).values()
    (preparation,) = deployment["spec"]["template"]["spec"]["initContainers"]
    assert "aliyun.com/gpu-mem" in preparation["args"]


async def test_nothing_is_made_without_the_rights_to_it() -> None:
    cluster = cluster_with()
    cluster.api.forbidden.add(paths.PODS)
    operator = await converge(cluster)
    assert said(cluster).startswith("False RightsMissing: ")
    assert cluster.api.of(DEPLOYMENTS) == {}
    cluster.api.forbidden.clear()
    await looked_again(cluster, operator)
    assert said(cluster).startswith("True Configured: ")


async def test_pods_that_nobody_places_are_counted_until_they_are_gone() -> None:
    cluster = cluster_with()
    cluster.api.put(paths.PODS, waiting("theirs", "default-scheduler"))
    cluster.api.put(paths.PODS, waiting("ours", OURS))
    operator = await converge(cluster)
    assert "1 pod with schedulerName: default-scheduler (a/theirs)" in said(cluster, "Degraded")
    assert said(cluster, "Ready").startswith("True ")

    cluster.add_node("cp", control_plane=True)
    cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"backend": "KubeScheduler"}}})
    await converge(cluster, operator)
    assert cluster.api.of(DEPLOYMENTS) == {}
    await looked_again(cluster, operator)
    assert f"1 pod with schedulerName: {OURS} (a/ours)" in said(cluster, "Degraded")
    cluster.api.remove(paths.PODS, "ours")
    await looked_again(cluster, operator)
    assert said(cluster, "Degraded").startswith("False ")


@pytest.mark.parametrize(
    ("engine", "before", "after"),
    [
        pytest.param("Plugin", our_scheduler("1.36"), our_scheduler("1.37"), id="Plugin"),
        pytest.param("Extender", kube_scheduler("v1.36.3"), kube_scheduler("v1.37.0"), id="Extender"),
    ],
)
async def test_an_operator_that_starts_during_an_upgrade_rolls_nothing_out_before_all_replicas_had_time(
    engine: str, before: str, after: str
) -> None:
    """It has not heard of the replicas that are still of the version before."""
    cluster = cluster_with("v1.36.3", engine=engine)
    await converge(cluster)
    cluster.serve("v1.37.0")
    operator = Operator(cluster, now=cluster.now)
    await operator.resync()
    for minutes, image in ((0, before), (4, before), (6, after)):
        operator.now = cluster.now + timedelta(minutes=minutes)
        await operator.work(SCHEDULERS)
        await operator.work("*")
        assert image_of(cluster) == image


async def test_while_replicas_of_the_server_are_upgraded_nothing_is_rolled_out() -> None:
    """They answer in turns, and kube-scheduler may not be newer than any of them."""
    cluster = cluster_with("v1.36.3", engine="Extender")
    operator = Operator(cluster)
    await looked_again(cluster, operator)
    path = f"apply {DEPLOYMENTS}/{OURS}"
    written = cluster.api.writes.count(path)
    for second in range(0, 600, 10):
        cluster.serve(("v1.36.3", "v1.36.10")[second // 10 % 2])
        await operator.work(SCHEDULERS)
        await operator.work("*")
        operator.now += timedelta(seconds=10)
    assert cluster.api.writes.count(path) == written
    for _ in range(40):
        await operator.work(SCHEDULERS)
        await operator.work("*")
        operator.now += timedelta(seconds=10)
    assert cluster.api.writes.count(path) == written + 1
    assert image_of(cluster) == kube_scheduler("v1.36.10")
