"""The chart on a real cluster: installed, upgraded and uninstalled by real Helm."""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.fixtures import own_namespace
from tests.e2e.observe import PODS, POLICIES, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod
from tests.samples.chart import CHART, SYSTEM, HelmError, as_arguments, run_helm, run_helm_aloud

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

DEFINITION = "gpusharepolicies.gpushare.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
CLUSTER_WIDE = (
    DEFINITIONS,
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    f"{ADMISSION}ies",
    f"{ADMISSION}ybindings",
)
IN_NAMESPACE = (
    "/api/v1/namespaces/{}/serviceaccounts",
    "/api/v1/namespaces/{}/configmaps",
    "/api/v1/namespaces/{}/secrets",
    "/api/v1/namespaces/{}/resourcequotas",
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/daemonsets",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "/apis/storage.k8s.io/v1/namespaces/{}/csistoragecapacities",
)
KUBERNETES_OWN = {"default", "kube-root-ca.crt"}
"""In every namespace."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster without the product."""
    with LocalCluster(tmp_path_factory.mktemp("chart")) as running:
        running.start(ClusterConfig.of_size(workers=1))
        running.wait_ready()
        yield running


@dataclass(frozen=True, slots=True)
class Release:
    """The chart as an administrator handles it, who keeps Helm's files in ``home``."""

    cluster: LocalCluster
    home: Path

    def helm(self, *arguments: str) -> str:
        return run_helm(*arguments, "--namespace", SYSTEM, env=self.environment, timeout=400.0)

    @property
    def environment(self) -> dict[str, str]:
        folders = {f"HELM_{name}_HOME": str(self.home / name) for name in ("CACHE", "CONFIG", "DATA")}
        return {**os.environ, **folders, "KUBECONFIG": str(self.cluster.kubeconfig)}

    def test(self) -> str:
        arguments = ["test", "gpushare", "--namespace", SYSTEM, "--hide-notes"]
        return run_helm_aloud(*arguments, env=self.environment, timeout=400.0)

    def install(self, **values: Any) -> None:
        arguments = ["install", "gpushare", str(CHART), "--create-namespace", "--wait"]
        self.helm(*arguments, *as_arguments(values))

    def upgrade(self, chart: Path, **values: Any) -> None:
        kept = ["--reset-then-reuse-values", "--wait"]
        self.helm("upgrade", "gpushare", str(chart), *kept, *as_arguments(values))

    def uninstall(self) -> str:
        return self.helm("uninstall", "gpushare", "--wait")


@pytest.fixture
def release(small: LocalCluster, tmp_path: Path) -> Release:
    return Release(small, tmp_path)


def ours(cluster: LocalCluster) -> list[str]:
    """Everything that an installation may leave behind in the cluster."""
    collections = [*CLUSTER_WIDE, *(path.format(SYSTEM) for path in IN_NAMESPACE)]
    names = [(path, item["metadata"]["name"]) for path in collections for item in get(cluster, path)["items"]]
    return [
        f"{path}/{name}"
        for path, name in names
        if "gpushare" in name or (SYSTEM in path and name not in KUBERNETES_OWN)
    ]


def await_nothing_left(cluster: LocalCluster) -> None:
    """The garbage collector deletes some of it a while after its owners."""
    wait_until("nothing is left", lambda: not ours(cluster), explain=lambda: str(ours(cluster)))


def control_plane_files(cluster: LocalCluster) -> dict[str, str]:
    """Every file below /etc/kubernetes of the control plane and its SHA-256."""
    root = cluster.node_path("control-plane-1", "/etc/kubernetes")
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def spec(**extra: Any) -> Json:
    return {**policy("default", nodes=["gpu-1"])["spec"], **extra}


def newer_chart(folder: Path) -> Path:
    """The chart of a later version: the definition of policies prints a column more."""
    chart = folder / "newer"
    shutil.copytree(CHART, chart)
    (definition,) = (chart / "files" / "crds").glob("*policies.yaml")
    body = yaml.safe_load(definition.read_text())
    columns = body["spec"]["versions"][0]["additionalPrinterColumns"]
    columns.append({"name": "Newer", "type": "string", "jsonPath": ".metadata.uid"})
    definition.write_text(yaml.safe_dump(body))
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**described, "version": "0.1.1"}))
    return chart


def uid_of_policy(cluster: LocalCluster) -> str:
    return str(get(cluster, f"{POLICIES}/default")["metadata"]["uid"])


def daemon_set_pods(daemon_sets: Iterable[Json]) -> dict[str, Json]:
    """The pods' specs of the operator's DaemonSets, by program."""
    specs = [daemon_set["spec"]["template"]["spec"] for daemon_set in daemon_sets]
    return {spec["containers"][0]["name"]: spec for spec in specs}


def await_running(cluster: LocalCluster, namespace: str, count: int) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(pods) == count and all(is_running(pod) for pod in pods),
        what=f"{count} pods run",
        describe=lambda pods: [pod["status"] for pod in pods],
    )


def test_from_nothing_to_shared_cards_through_an_upgrade_and_back_to_nothing(
    small: LocalCluster, release: Release, tmp_path: Path
) -> None:
    before, product = control_plane_files(small), Product(small)
    release.install(policy=spec(), imagePullSecrets=[{"name": "registry"}], networkPolicy={"enabled": True})
    product.await_ready("default")
    installed = ours(small)
    said = release.test()
    assert "ok: an operator is at work: gpushare-operator-" in said
    assert "ok: the API server accepts a valid policy (dry run)" in said
    assert ours(small) == installed
    assert [item for item in get(small, POLICIES)["items"] if item["metadata"]["name"] != "default"] == []
    assert control_plane_files(small) != before
    pods = daemon_set_pods(get(small, paths.daemon_sets(SYSTEM))["items"])
    pulled = [{"name": "registry"}]
    assert {name: pod["imagePullSecrets"] for name, pod in pods.items()} == dict.fromkeys(pods, pulled)
    assert pods.keys() == {"plugin", "extender"}
    with own_namespace(small) as namespace:
        create(small, namespace, [pod("before", {"main": 4})])
        await_running(small, namespace, 1)
        uid = uid_of_policy(small)

        resources = {"requests": {"cpu": "30m", "memory": "70Mi"}, "limits": {"memory": "200Mi"}}
        release.upgrade(newer_chart(tmp_path), plugin={"resources": resources})
        watch_until(
            small,
            paths.daemon_sets(SYSTEM),
            lambda sets: daemon_set_pods(sets)["plugin"]["containers"][0]["resources"] == resources,
            what="the plugin's DaemonSet has the new resources",
        )
        product.await_ready("default")
        assert uid_of_policy(small) == uid
        columns = get(small, f"{DEFINITIONS}/{DEFINITION}")["spec"]["versions"][0]["additionalPrinterColumns"]
        assert columns[-1]["name"] == "Newer"
        create(small, namespace, [pod("after", {"main": 4})])
        await_running(small, namespace, 2)

        release.uninstall()
        assert control_plane_files(small) == before
        await_nothing_left(small)
        await_running(small, namespace, 2)


def test_what_cannot_be_taken_back_stops_the_uninstallation_and_is_named(
    small: LocalCluster, release: Release
) -> None:
    release.install(policy=spec(scheduler={"backend": "External"}), uninstall={"timeoutSeconds": 10})
    watch_until(
        small,
        POLICIES,
        lambda policies: any(policy["metadata"].get("finalizers") for policy in policies),
        what="the policy is in the operator's hands",
    )
    operator = ("deployment/gpushare-operator", "-n", SYSTEM)
    small.kubectl("scale", *operator, "--replicas=0", "--timeout=240s")
    watch_until(
        small,
        f"/api/v1/namespaces/{SYSTEM}/pods",
        lambda pods: not any("operator" in pod["metadata"]["name"] for pod in pods),
        what="the operator has stopped",
    )
    with pytest.raises(HelmError) as raised:
        release.uninstall()
    assert "after 10 s not everything is undone: policy default" in str(raised.value)
    assert "Check that the operator runs" in str(raised.value)
    assert get(small, f"{DEFINITIONS}/{DEFINITION}")["metadata"].get("deletionTimestamp") is None
    small.kubectl("scale", *operator, "--replicas=1")
    small.kubectl("wait", "--for=delete", "gpusharepolicy/default", "--timeout=240s", timeout=260)
    release.uninstall()
    await_nothing_left(small)
