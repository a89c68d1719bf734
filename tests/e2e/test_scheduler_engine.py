"""Backend KubeScheduler with engine Plugin: our image in the cluster's own kube-scheduler, and back."""

from collections.abc import Iterator

import pytest
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST, edit_manifest, files
from tests.e2e.fixtures import WORKERS, await_agreement, minor_of
from tests.e2e.observe import POLICIES, get, watch_until
from tests.e2e.product import ROOT, SYSTEM, Product, policy
from tests.e2e.test_dedicated import await_running, condition
from tests.e2e.test_dedicated_engine import (
    allocations,
    await_bound_by,
    await_engine,
    report,
)
from tests.e2e.test_scheduler_reconnection import await_reason
from tests.e2e.traces import traces
from tests.e2e.workloads import create, pod

from gpushare_core.kube import paths
from gpushare_core.kubernetes_minors import engine_minor
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("has_engine")]

KEYS = "/etc/kubernetes/gpushare"
RIGHTS = str(ROOT / "manifests" / "kube-scheduler" / "rights.yaml")


@pytest.fixture
def before(cluster: LocalCluster, product: Product) -> Iterator[dict[str, str]]:
    """The files of the control plane. They are as before once the policies are gone."""
    del product
    found = files(cluster)
    yield found
    cluster.kubectl("delete", "gpusharepolicy", "--all", "--timeout=240s", timeout=260)
    cluster.kubectl("delete", "-f", RIGHTS, "--ignore-not-found")
    assert files(cluster) == found


def asking(engine: str) -> Json:
    body = policy("default", nodes=WORKERS, cards=2)
    body["spec"]["scheduler"] = {"backend": "KubeScheduler", "engine": engine}
    return body


def image(cluster: LocalCluster) -> str:
    """Of kube-scheduler, as its manifest on the host says it."""
    text = cluster.node_path(CONTROL_PLANE, MANIFEST).read_text()
    (line,) = [line.strip() for line in text.splitlines() if line.strip().startswith("image: ")]
    return line.removeprefix("image: ")


def our_image(cluster: LocalCluster) -> str:
    return f"gpushare-scheduler:{VERSION}-{engine_minor(minor_of(cluster))}"


def daemon_sets(cluster: LocalCluster) -> list[str]:
    found = get(cluster, paths.daemon_sets(SYSTEM))["items"]
    return [each["metadata"]["name"] for each in found]


def test_before_the_rights_are_there_no_host_is_edited(
    cluster: LocalCluster, product: Product, before: dict[str, str], namespace: str
) -> None:
    product.apply(asking("Plugin"))
    watch_until(
        cluster,
        POLICIES,
        lambda found: any(
            said["reason"] == "RightsMissing"
            for each in found
            for said in each.get("status", {}).get("conditions", ())
        ),
        what="the condition says that rights are missing",
        describe=lambda found: [each.get("status") for each in found],
    )
    assert RIGHTS.removeprefix(f"{ROOT}/") in condition(cluster, "SchedulerConfigured")["message"]
    assert files(cluster) == before

    cluster.kubectl("apply", "-f", RIGHTS)
    product.await_ready("default")
    assert image(cluster) == our_image(cluster)
    create(cluster, namespace, [pod("shares", {"main": 4})])
    await_running(cluster, namespace, "shares")


def test_the_clusters_own_kube_scheduler_places_pods_by_cards_and_is_as_before_in_the_end(
    cluster: LocalCluster, product: Product, before: dict[str, str], namespace: str
) -> None:
    cluster.kubectl("apply", "-f", RIGHTS)
    stock, without_us = image(cluster), traces(cluster)
    product.apply(asking("Plugin"))
    ready = product.await_ready("default")
    assert (ready["status"]["backend"], ready["status"]["engine"]) == ("KubeScheduler", "Plugin")
    assert (
        f"kube-scheduler ({our_image(cluster)}, engine Plugin) places pods by cards"
        in (condition(cluster, "SchedulerConfigured")["message"])
    )
    assert image(cluster) == our_image(cluster)
    assert "gpushare-extender" not in daemon_sets(cluster)

    create(cluster, namespace, [pod(f"p{units}", {"main": units}) for units in (16, 9, 7, 0)])
    pods = await_running(cluster, namespace, "p16", "p9", "p7", "p0")
    given = allocations([each for name, each in pods.items() if name != "p0"])
    for name, allocation in given.items():
        assert sum(allocation["cards"].values()) == int(name.removeprefix("p"))
        assert allocation["node"] == pods[name]["spec"]["nodeName"]
    assert "gpushare.io/allocation" not in pods["p0"]["metadata"].get("annotations", {})
    await_bound_by(cluster, namespace, dict.fromkeys(pods, "default-scheduler"))
    await_agreement(cluster, namespace)

    cluster.kubectl("delete", "pods", "--all", "-n", namespace)
    product.delete("default")
    assert image(cluster) == stock
    assert files(cluster) == before
    assert traces(cluster) == without_us
    assert [entry for entry in report(cluster, "audit", "--residue")["residue"] if not entry["passes"]] == []


@pytest.mark.usefixtures("before")
def test_an_image_that_somebody_wrote_in_place_of_ours_is_noticed_and_ours_again(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """Some tools upgrade kube-scheduler so. It does not start then: our configuration names the plugin."""
    cluster.kubectl("apply", "-f", RIGHTS)
    stock, ours = image(cluster), our_image(cluster)
    product.apply(asking("Plugin"))
    product.await_ready("default")
    edited = cluster.node_path(CONTROL_PLANE, MANIFEST).read_text()
    edit_manifest(cluster, edited.replace(f"image: {ours}", f"image: {stock}").encode())
    message = await_reason(cluster, "SchedulerConfigured", "ConnectionLost", seconds=300)
    assert "its kube-scheduler runs without gpushare's configuration or image" in message

    product.await_ready("default")
    assert image(cluster) == ours
    create(cluster, namespace, [pod("shares", {"main": 4})])
    await_running(cluster, namespace, "shares")


@pytest.mark.usefixtures("before")
def test_a_change_of_engine_either_way_moves_no_pod_and_leaves_no_extender_behind(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    cluster.kubectl("apply", "-f", RIGHTS)
    product.apply(asking("Extender"))
    await_engine(cluster, product, "Extender")
    stock = image(cluster)
    made: list[str] = []
    for number, engine in enumerate(("Plugin", "Extender", "Plugin")):
        names = [f"before-{number}", f"during-{number}"]
        create(cluster, namespace, [pod(names[0], {"main": 3})])
        product.apply(asking(engine))
        create(cluster, namespace, [pod(names[1], {"main": 3})])
        await_engine(cluster, product, engine)
        made += names
        await_running(cluster, namespace, *made)
        await_agreement(cluster, namespace)
        assert image(cluster) == (our_image(cluster) if engine == "Plugin" else stock)
        await_keys(cluster, are_there=engine == "Extender")
        await_extenders(cluster, 1 if engine == "Extender" else 0)


def await_keys(cluster: LocalCluster, *, are_there: bool) -> None:
    """Wait until the control plane has keys of an extender, or none."""

    def keys() -> list[str]:
        return [path.name for path in cluster.node_path(CONTROL_PLANE, KEYS).rglob("*.pem")]

    wait_until(
        f"keys of an extender: {are_there}", lambda: bool(keys()) == are_there, explain=lambda: str(keys())
    )


def await_extenders(cluster: LocalCluster, number: int) -> None:
    """Wait until there are so many DaemonSets of extenders."""
    wait_until(
        f"{number} DaemonSets of extenders",
        lambda: daemon_sets(cluster).count("gpushare-extender") == number,
    )
