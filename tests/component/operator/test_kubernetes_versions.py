"""An API server that is too old is refused, by a condition that says what is needed; others are served."""

import logging

import pytest
from tests.fakes.operator_cluster import Cluster, Operator, converge

from gpushare_core.kube import paths
from gpushare_core.kubernetes_minors import NEWEST, OLDEST, RANGE
from gpushare_operator.cluster.server import VERSION_SETTLES
from gpushare_operator.reconcile import SCHEDULERS

CARDS = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
RULE = {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS}
TOO_OLD = f"v{OLDEST.major}.{OLDEST.minor - 1}.5"


def cluster_of(version: str) -> Cluster:
    cluster = Cluster()
    cluster.serve(version)
    cluster.add_node("gpu-1")
    cluster.add_node("control-plane", control_plane=True)
    cluster.add_policy("default", RULE)
    return cluster


def ready(cluster: Cluster, policy: str = "default") -> str:
    conditions = cluster.api.of(paths.POLICIES)[policy]["status"]["conditions"]
    (found,) = [condition for condition in conditions if condition["type"] == "Ready"]
    return f"{found['status']} {found['reason']}: {found['message']}"


def metadata(cluster: Cluster, collection: str, name: str) -> dict[str, object]:
    return dict(cluster.api.of(collection)[name]["metadata"])


async def settled(cluster: Cluster, operator: Operator | None = None) -> Operator:
    """Lets ``operator``, or a new one, read the version and work until nothing is left to do."""
    working = operator or Operator(cluster)
    await working.work(SCHEDULERS)
    return await converge(cluster, working)


@pytest.mark.parametrize("suffix", ["", "-eks-a737599", "-gke.1233000", "+k3s1", "+rke2r1"])
async def test_an_old_server_is_refused_and_nothing_is_made(suffix: str) -> None:
    cluster = cluster_of(TOO_OLD + suffix)
    await settled(cluster)
    expected = (
        f"False KubernetesUnsupported: the API server is {TOO_OLD}; gpushare 0.1.0 needs Kubernetes {RANGE}: "
    )
    assert ready(cluster).startswith(expected)
    assert cluster.api.of(paths.SHARE_NODES) == {}
    assert "finalizers" not in metadata(cluster, paths.POLICIES, "default")
    assert metadata(cluster, paths.NODES, "gpu-1")["labels"] == {}


async def test_a_policy_that_was_refused_can_be_deleted() -> None:
    cluster = cluster_of(TOO_OLD)
    operator = await settled(cluster)
    cluster.delete_policy("default")
    await settled(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}


async def test_what_is_installed_stays_on_a_server_that_is_too_old_and_can_be_taken_back() -> None:
    cluster = cluster_of(f"v{NEWEST}.1")
    await settled(cluster)
    cluster.serve(TOO_OLD)
    cluster.add_node("gpu-2")
    cluster.add_policy("second", {**RULE, "names": ["gpu-2"]})
    operator = await settled(cluster)
    for policy in ("default", "second"):
        assert ready(cluster, policy).startswith("False KubernetesUnsupported: ")
    assert [*cluster.api.of(paths.SHARE_NODES)] == ["gpu-1"]
    assert cluster.edited == {"control-plane"}
    cluster.delete_policy("default")
    cluster.delete_policy("second")
    await settled(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
    assert cluster.api.of(paths.SHARE_NODES) == {}
    assert cluster.edited == set()


async def test_the_policy_is_served_once_no_replica_is_old_any_more() -> None:
    cluster = cluster_of(TOO_OLD)
    operator = await settled(cluster)
    for version in (TOO_OLD, f"v{OLDEST}.0"):
        cluster.serve(version)
        await operator.work(SCHEDULERS)
        await operator.work("default")
        assert ready(cluster).startswith("False KubernetesUnsupported: ")
    operator.now += VERSION_SETTLES
    await settled(cluster, operator)
    assert ready(cluster).startswith("True Serving: ")


@pytest.mark.parametrize(
    "version",
    [f"v{OLDEST}.0-alpha.1", f"v{NEWEST}.2", "v1.99.0", "v2.0.0", "unknown", "v0.0.0-master+$Format:%H$"],
)
async def test_newer_and_unknown_versions_are_served(version: str) -> None:
    cluster = cluster_of(version)
    await settled(cluster)
    assert ready(cluster).startswith("True Serving: ")


async def test_a_version_that_may_not_be_read_is_not_refused() -> None:
    cluster = cluster_of(TOO_OLD)
    cluster.api.forbidden.add(paths.SERVER_VERSION)
    await settled(cluster)
    assert ready(cluster).startswith("True Serving: ")


async def test_a_version_that_no_test_ran_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster = cluster_of("v1.99.0")
    operator = await settled(cluster)
    await settled(cluster, operator)
    (said,) = [line for line in caplog.messages if "v1.99.0" in line]
    assert said == f"the API server is v1.99.0; this version of gpushare is tested with Kubernetes {RANGE}"
