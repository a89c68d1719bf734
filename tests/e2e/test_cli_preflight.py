"""``kubectl gpushare preflight`` on real clusters: before an installation, after it, and without rights."""

import json
from collections.abc import Iterator

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.kubernetes_features import MUTATING_POLICY, is_on
from tests.e2e.observe import PATIENCE

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig

pytestmark = pytest.mark.e2e

Json = dict[str, object]
FOR_KUBELETS = ("--request-timeout", f"{PATIENCE:g}s")
"""They are asked when their cluster has just started."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster of its own, in which nothing of gpushare is."""
    with LocalCluster(tmp_path_factory.mktemp("bare")) as running:
        running.start(ClusterConfig.of_size(workers=1))
        running.wait_ready()
        yield running


def preflight(cluster: LocalCluster, *arguments: str, status: int = 0) -> Json:
    done = gpushare(cluster, "preflight", "-o", "json", *FOR_KUBELETS, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    report: Json = json.loads(done.stdout)
    return report


def answers(report: Json) -> dict[str, Json]:
    listed = report["answers"]
    assert isinstance(listed, list)
    return {answer["question"]: answer for answer in listed}


def test_before_the_installation(bare: LocalCluster) -> None:
    report = preflight(bare)
    assert (report["isInstalled"], report["distribution"]) == (False, "kubeadm")
    assert report["recommendedBackend"] == "KubeScheduler"
    assert report["unread"] == []
    found = answers(report)
    for question in ("Kubernetes", "kubelets", "kube-scheduler", "admission", "systems", "rights"):
        assert found[question]["verdict"] == "ok", found[question]
    assert "static pod on control-plane-1; backend KubeScheduler adds" in str(
        found["kube-scheduler"]["found"]
    )
    assert "taken to be" not in str(found["kube-scheduler"]["found"])
    assert str(found["cgroups"]["found"]).endswith(" on all 2 nodes")
    assert gpushare(bare, "preflight").stdout.startswith("gpushare can be installed: nothing is missing")


def test_nodes_with_cards_are_named(bare: LocalCluster) -> None:
    bare.kubectl("label", "node", "gpu-1", "nvidia.com/gpu.present=true")
    try:
        assert gpushare(bare, "preflight", "-o", "name").stdout == "node/gpu-1\n"
        assert answers(preflight(bare))["cards"]["verdict"] == "ok"
    finally:
        bare.kubectl("label", "node", "gpu-1", "nvidia.com/gpu.present-")


def test_a_namespace_that_admits_too_little_is_missing_until_it_is_labelled(bare: LocalCluster) -> None:
    label = "pod-security.kubernetes.io/enforce"
    bare.kubectl("create", "namespace", "gpushare-system")
    bare.kubectl("label", "namespace", "gpushare-system", f"{label}=restricted")
    answer = answers(preflight(bare, status=1))["namespace"]
    assert answer["verdict"] == "missing"
    bare.kubectl(*str(answer["command"]).split()[1:])
    assert answers(preflight(bare))["namespace"]["verdict"] == "ok"


def test_who_may_read_nothing_is_told_what_is_unknown(bare: LocalCluster) -> None:
    found = answers(preflight(bare, "--as", "eve", status=1))
    assert found["Kubernetes"]["verdict"] == "ok"
    points_pods = is_on(MUTATING_POLICY, bare.kubernetes)
    assert found["admission"]["verdict"] == ("ok" if points_pods else "note")
    assert found["rights"]["verdict"] == "missing"
    unknown = {question for question, answer in found.items() if answer["verdict"] == "unknown"}
    assert unknown == set(found) - {"Kubernetes", "admission", "rights"}


@pytest.mark.usefixtures("shared_policy")
def test_after_the_installation(cluster: LocalCluster) -> None:
    report = preflight(cluster)
    assert report["isInstalled"] is True
    found = answers(report)
    assert str(found["kube-scheduler"]["found"]).endswith("; connected to gpushare")
    assert found["other plugins"]["found"] == "no other device plugin for cards is seen"
    assert found["namespace"]["found"] == "gpushare-system admits pods of level privileged"
