"""``kubectl gpushare undo`` as a user has it: a policy and all that it did, gone by one command."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.control_plane import files
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.traces import traces
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster

pytestmark = pytest.mark.e2e

TIMEOUT = "240s"
"""Enough to undo all; for five minutes kubelets may show a zero after that, which goes by itself."""


@pytest.fixture(scope="module")
def before(cluster: LocalCluster, product: Product) -> Any:
    """The cluster without a policy."""
    assert product.cluster is cluster
    return traces(cluster), files(cluster)


@pytest.fixture(scope="module", autouse=True)
def own_policy(cluster: LocalCluster, product: Product, before: Any) -> Iterator[None]:
    assert before
    product.apply(policy("default", nodes=WORKERS))
    product.await_ready("default")
    yield
    cluster.kubectl("delete", "gpusharepolicy", "default", "--ignore-not-found", "--timeout=240s")


def identities(cluster: LocalCluster) -> dict[str, Any]:
    """What of ours is in the cluster and whether it is being deleted.

    The plugin and the operator go on to write statuses, so objects are not compared whole.
    """
    return {
        kind: [(item["metadata"]["uid"], "deletionTimestamp" in item["metadata"]) for item in found]
        if kind in ("share nodes", "daemonsets", "jobs")
        else found
        for kind, found in traces(cluster).items()
    }


def run_pod(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("shares", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(item) for item in pods),
        what="the pod runs",
    )


def test_where_nobody_can_be_asked_nothing_is_deleted(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "undo")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--yes does it without asking, --dry-run shows what it would do" in done.stderr
    assert "deletionTimestamp" not in cluster.kubectl("get", "gpusharepolicy", "default", "-o", "json")


def test_a_dry_run_says_what_is_there_and_changes_nothing(cluster: LocalCluster, namespace: str) -> None:
    run_pod(cluster, namespace)
    present = identities(cluster), files(cluster)
    done = gpushare(cluster, "undo", "--dry-run", "-o", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)["plan"]
    objects = {step["name"]: step["objects"] for step in plan["steps"]}
    assert objects["GPUShareNodes"] == WORKERS
    assert objects["schedulers restored"] == ["control-plane-1"]
    assert [*objects][-1] == "finalizer"
    assert f"{namespace}/shares" in {f"{item['namespace']}/{item['name']}" for item in plan["pods"]}
    assert (identities(cluster), files(cluster)) == present


def test_all_is_undone_and_proven(cluster: LocalCluster, namespace: str, before: Any) -> None:
    run_pod(cluster, namespace)
    done = gpushare(cluster, "undo", "--yes", "--timeout", TIMEOUT, "-o", "json", seconds=480)
    report = json.loads(done.stdout)
    assert report["outcome"] == "Undone", done.stderr
    assert [entry for entry in report["residue"] if not entry["passes"]] == []
    assert done.returncode == bool(report["residue"])
    assert "What deleting policy default does, in this order:" in done.stderr
    assert (traces(cluster), files(cluster)) == before
    (running,) = get(cluster, PODS.format(namespace=namespace))["items"]
    assert is_running(running)


def test_once_more_there_is_nothing_to_undo(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "undo", "--yes", "--timeout", "1s")
    assert "There is no policy, and nothing to undo." in done.stdout
