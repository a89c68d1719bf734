"""A cluster whose second control plane joins while it runs: both schedulers are connected, and restored."""

import hashlib
from collections.abc import Iterable

import pytest
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import PODS, Json, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import NodeConfig

pytestmark = pytest.mark.e2e

SECOND = "control-plane-2"


def scheduler_hashes(cluster: LocalCluster) -> dict[str, str]:
    paths = {node: cluster.node_path(node, MANIFEST) for node in (CONTROL_PLANE, SECOND)}
    return {node: hashlib.sha256(path.read_bytes()).hexdigest() for node, path in paths.items()}


def runs_of_hostctl(cluster: LocalCluster) -> dict[str, Json]:
    """UID -> pod. Those of an earlier module may still be there: the garbage collector takes its time."""
    pods = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    found = (pod for pod in pods if "batch.kubernetes.io/job-name" in pod["metadata"]["labels"])
    return {pod["metadata"]["uid"]: pod for pod in found}


def times_of_runs(runs: Iterable[Json]) -> list[tuple[str, str]]:
    """When each run of hostctl began and ended, in order; its Job is complete a little later."""
    ended = [run["status"]["containerStatuses"][0]["state"]["terminated"] for run in runs]
    return sorted((run["startedAt"], run["finishedAt"]) for run in ended)


def test_every_control_plane_is_connected_and_restored(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    cluster.add_node(NodeConfig(SECOND, control_plane=True))
    cluster.wait_ready()
    before, earlier = scheduler_hashes(cluster), runs_of_hostctl(cluster)
    product.apply(policy("default", nodes=WORKERS))
    product.await_ready("default", seconds=300)
    connected = scheduler_hashes(cluster)
    assert all(connected[node] != before[node] for node in before)
    runs = runs_of_hostctl(cluster)
    first, second = times_of_runs(runs[uid] for uid in runs.keys() - earlier.keys())
    assert first[1] <= second[0], "the next one is edited when the one before serves"
    create(cluster, namespace, [pod("shares", {"main": 4})])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="a pod that shares a card runs",
    )
    product.delete("default")
    assert scheduler_hashes(cluster) == before
    cluster.remove_node(SECOND)
    # No kubelet takes it away any more, and Kubernetes takes a minute: other modules look at schedulers.
    shown = ("pod", f"kube-scheduler-{SECOND}", "-n", "kube-system")
    cluster.kubectl("delete", *shown, "--force", "--grace-period=0", "--ignore-not-found")
