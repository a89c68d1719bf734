"""The extender beside a real kube-scheduler: when refused pods are tried again, and who may call it."""

import json
import sys
from collections.abc import Iterator, Sequence

import pytest
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_refused, is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster

FORGED_CALL = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], sys.argv[2].encode(), timeout=5).read().decode())
"""

pytestmark = [pytest.mark.e2e, pytest.mark.connected]


@pytest.fixture(scope="module", autouse=True)
def one_card(product: Product) -> Iterator[None]:
    """One worker of one card of 16 units."""
    with product.in_force(policy("default", nodes=["gpu-1"], cards=1)):
        yield


def await_pod(cluster: LocalCluster, namespace: str, name: str, state: str, *, seconds: float = 60.0) -> None:
    holds = {"running": is_running, "refused": is_refused}[state]
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and holds(pod) for pod in pods),
        what=f"{name} {state}",
        seconds=seconds,
        describe=lambda pods: [pod["status"] for pod in pods],
    )


@pytest.mark.parametrize(
    "how",
    [
        pytest.param([], id="deleted"),
        pytest.param(["--force", "--grace-period=0"], id="deleted by force"),
    ],
)
def test_a_pod_that_waits_for_units_gets_them_soon(
    cluster: LocalCluster, namespace: str, how: list[str]
) -> None:
    create(cluster, namespace, [pod("first", {"main": 16}, on="gpu-1")])
    await_pod(cluster, namespace, "first", "running")
    create(cluster, namespace, [pod("next", {"main": 12}, on="gpu-1")])
    await_pod(cluster, namespace, "next", "refused")
    cluster.kubectl("delete", "pod", "first", "-n", namespace, "--wait=false", *how)
    await_pod(cluster, namespace, "next", "running", seconds=90)


def test_a_forged_call_binds_nothing(cluster: LocalCluster, namespace: str) -> None:
    waiting = pod("waiting", {"main": 0})
    waiting["spec"]["schedulerName"] = "nobody"
    create(cluster, namespace, [waiting])
    path = f"{PODS.format(namespace=namespace)}/waiting"
    uid = get(cluster, path)["metadata"]["uid"]
    call: Json = {"PodName": "waiting", "PodNamespace": namespace, "PodUID": uid, "Node": "gpu-1"}
    url = f"http://127.0.0.1:{EXTENDER_PORT}/gpushare/bind"
    forged = cluster.node_exec("control-plane-1", [sys.executable, "-c", FORGED_CALL, url, json.dumps(call)])
    heard = forged.stdout.strip()
    assert not heard or json.loads(heard)["Error"], "refused, or with mutual TLS not even heard"
    assert "nodeName" not in get(cluster, path)["spec"]


def test_the_lease_is_held_while_pods_are_bound_and_given_back_afterwards(
    cluster: LocalCluster, namespace: str
) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"

    def is_held(leases: Sequence[Json]) -> bool:
        ours = [lease for lease in leases if lease["metadata"]["name"] == "gpushare-extender"]
        return any(lease["spec"].get("holderIdentity") for lease in ours)

    create(cluster, namespace, [pod("bound", {"main": 4}, on="gpu-1")])
    watch_until(cluster, path, is_held, what="the Lease held")
    watch_until(cluster, path, lambda leases: not is_held(leases), what="the Lease given back")
