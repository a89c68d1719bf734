"""From one minor of Kubernetes to the next, control plane first, then kubelets, while pods hold cards."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.e2e.control_plane import MANIFEST, edit_manifest, files
from tests.e2e.kubernetes_features import MUTATING_POLICY, feature
from tests.e2e.kubernetes_upgrade import WORKERS, KubernetesUpgrade, upgrade_path, upgraded
from tests.e2e.observe import condition, get, watch_until
from tests.e2e.product import ROOT, SYSTEM, policy
from tests.e2e.test_dedicated import OURS, await_pointed, deployments
from tests.e2e.test_scheduler_reconnection import await_reason

from gpushare_core.kube import paths
from gpushare_core.kubernetes_minors import KubernetesMinor, engine_minor
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_localcluster.build.minors import Minor
from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

DEDICATED = ROOT / "manifests" / "dedicated"
GROUP = "admissionregistration.k8s.io"
POLICY_AND_BINDING = ("mutatingadmissionpolicies,mutatingadmissionpolicybindings", OURS)
STORED = {"1.33": "v1alpha1", "1.34": "v1alpha1", "1.35": "v1beta1", "1.36": "v1beta1"}
"""How API servers store the policies: ``pkg/kubeapiserver/default_storage_factory_builder.go``."""
READ_ETCD = """
import base64, json, sys, urllib.request
body = json.dumps({"key": base64.b64encode(sys.argv[1].encode()).decode()}).encode()
answer = json.load(urllib.request.urlopen("http://127.0.0.1:2379/v3/kv/range", body, timeout=10))
sys.stdout.buffer.write(base64.b64decode(answer["kvs"][0]["value"]))
"""


@pytest.fixture
def path() -> Sequence[Minor]:
    found = upgrade_path()
    if found[0].name == "1.32":
        pytest.skip("a kubelet 1.33 resizes what it finds running of 1.32, and ends: nodes have no cgroups")
    return found


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster's: the paths of sockets below it may not be long."""
    return tmp_path_factory.mktemp("cluster")


def sharing(backend: str) -> Json:
    """Two nodes of four cards."""
    body = policy("default", nodes=[*WORKERS], cards=4)
    body["spec"]["scheduler"] = {"backend": backend}
    return body


def test_kube_scheduler_is_connected_again_and_pods_keep_their_cards(
    path: Sequence[Minor], folder: Path
) -> None:
    with upgraded(folder, path) as upgrade:
        untouched = files(upgrade.cluster)
        upgrade.product.apply(sharing("KubeScheduler"))
        upgrade.product.await_ready("default")
        upgrade.run_on_all("first")
        for minor in path[1:]:
            written = go_on_with_kube_scheduler(upgrade, minor)
        upgrade.product.delete("default")
        assert upgrade.manifest.read_bytes() == written
        now = files(upgrade.cluster)
        manifest = str(Path(MANIFEST).relative_to("/etc/kubernetes"))
        assert {**now, manifest: ""} == {**untouched, manifest: ""}
        upgrade.check_bound_once()


def go_on_with_kube_scheduler(upgrade: KubernetesUpgrade, minor: Minor) -> bytes:
    """Returns kube-scheduler's manifest as the upgrade writes it.

    First as whoever changes nothing but the tag writes it, with our part, then as kubeadm does, without.
    """
    edited, older = upgrade.manifest.read_bytes(), upgrade.present
    written = upgrade.upgrade_control_plane(minor)
    edit_manifest(upgrade.cluster, edited.replace(older.version.encode(), minor.version.encode()))
    upgrade.run_pod(f"while-{minor.number}")
    upgrade.await_kube_scheduler(is_ours=True)
    upgrade.product.await_ready("default")
    upgrade.check_placed_by_cards()

    edit_manifest(upgrade.cluster, written)
    upgrade.await_kube_scheduler(is_ours=False)
    upgrade.run_pod(f"without-{minor.number}")
    await_reason(upgrade.cluster, "SchedulerConfigured", "ConnectionLost", seconds=300)
    upgrade.product.await_ready("default")
    upgrade.await_kube_scheduler(is_ours=True)
    upgrade.check_placed_by_cards()
    upgrade.run_on_all(f"with-older-kubelets-{minor.number}")

    upgrade.upgrade_kubelets(minor)
    upgrade.run_on_all(f"with-kubelets-{minor.number}")
    upgrade.product.await_ready("default")
    return written


def test_the_schedulers_own_version_follows_and_pods_keep_coming_to_it(
    path: Sequence[Minor], folder: Path
) -> None:
    with upgraded(folder, path, flags=flags_for_policies(path[0])) as upgrade:
        cluster = upgrade.cluster
        cluster.kubectl("apply", "-k", str(DEDICATED / "scheduler"))
        manifest = (DEDICATED / "pods.yaml").read_text()
        cluster.kubectl(
            "apply", "-f", "-", stdin=manifest.replace(f"{GROUP}/v1\n", f"{served_as(path[0])}\n")
        )
        upgrade.product.apply(sharing("Dedicated"))
        upgrade.product.await_ready("default")
        upgrade.run_on_all("first")
        for minor in path[1:]:
            written = go_on_with_dedicated(upgrade, minor)
        upgrade.product.delete("default")
        assert deployments(cluster) == ["gpushare-operator"]
        assert upgrade.manifest.read_bytes() == written
        upgrade.check_bound_once()


def flags_for_policies(minor: Minor) -> Sequence[str]:
    """Returns flags of the API server that make it serve MutatingAdmissionPolicies, also as the next minor.

    One of 1.33 reads them as v1alpha1, one of 1.34 as v1beta1, and neither is ready without.
    """
    if served_as(minor) == f"{GROUP}/v1":
        return ()
    versions = f"{GROUP}/v1alpha1=true,{GROUP}/v1beta1=true"
    return "--feature-gates=MutatingAdmissionPolicy=true", f"--runtime-config={versions}"


def served_as(minor: Minor) -> str:
    """Returns the version of MutatingAdmissionPolicies that a server has, switched on where it is not."""
    state = feature(MUTATING_POLICY).state_in(KubernetesMinor(minor.major, minor.number))
    assert state, f"{minor.name} has none"
    return f"{GROUP}/{state.api}"


def go_on_with_dedicated(upgrade: KubernetesUpgrade, minor: Minor) -> bytes:
    """Returns kube-scheduler's manifest as the upgrade writes it."""
    written = upgrade.upgrade_control_plane(minor)
    upgrade.run_pod(f"while-{minor.number}")
    upgrade.await_kube_scheduler(is_ours=False)
    await_pointed(upgrade.cluster, upgrade.namespace, OURS)
    check_comes_to_ours(upgrade, f"with-older-scheduler-{minor.number}")
    write_policies_anew(upgrade.cluster)
    assert stored_as(upgrade.cluster) == f"{GROUP}/{STORED.get(minor.name, 'v1')}"

    restart_operator(upgrade.cluster)
    await_version(upgrade, minor)
    upgrade.check_placed_by_cards()
    check_comes_to_ours(upgrade, f"with-older-kubelets-{minor.number}")

    upgrade.upgrade_kubelets(minor)
    check_comes_to_ours(upgrade, f"with-kubelets-{minor.number}")
    upgrade.product.await_ready("default")
    return written


def check_comes_to_ours(upgrade: KubernetesUpgrade, name: str) -> None:
    assert upgrade.run_pod(name)["spec"]["schedulerName"] == OURS


def write_policies_anew(cluster: LocalCluster) -> None:
    """As docs/upgrade.md says: the API server stores them in the version that it prefers."""
    present = cluster.kubectl("get", *POLICY_AND_BINDING, "-o", "yaml")
    cluster.kubectl("replace", "-f", "-", stdin=present)


def stored_as(cluster: LocalCluster) -> str:
    """Returns the API version in which etcd has the policy."""
    key = f"/registry/mutatingadmissionpolicies/{OURS}"
    command = cluster.control_plane_command([sys.executable, "-c", READ_ETCD, key])
    stored = subprocess.run(command, capture_output=True, check=True).stdout
    found = re.search(rf"{GROUP}/\w+".encode(), stored)
    assert found, stored
    return found[0].decode()


def restart_operator(cluster: LocalCluster) -> None:
    """One that goes on waits five minutes for API servers that still are of the older version."""
    cluster.kubectl("rollout", "restart", "deployment/gpushare-operator", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gpushare-operator", "-n", SYSTEM, "--timeout=240s")


def await_version(upgrade: KubernetesUpgrade, minor: Minor) -> None:
    """Wait until the second kube-scheduler is the one for that version and serves.

    It is the one with the plugin where there is one; so its engine may change with the version, too.
    """
    ours = engine_minor(KubernetesMinor(minor.major, minor.number))
    image = f"{OURS}:{VERSION}-{ours}" if ours else f"registry.k8s.io/kube-scheduler:{minor.version}"
    engine = "Plugin" if ours else "Extender"
    watch_until(
        upgrade.cluster,
        paths.POLICIES,
        lambda policies: any(f"({image}, engine {engine})" in said_of(each) for each in policies),
        what=f"the scheduler {OURS} is {image}",
        seconds=240,
        describe=lambda policies: [each.get("status") for each in policies],
    )
    deployment = get(upgrade.cluster, paths.deployment_path(SYSTEM, OURS))
    images = [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]]
    assert image in images
    upgrade.product.await_ready("default")


def said_of(policy: Json) -> str:
    """What the policy says of a scheduler that is connected; empty where it is not."""
    said = condition(policy, "SchedulerConfigured")
    return str(said.get("message")) if said.get("status") == "True" else ""
