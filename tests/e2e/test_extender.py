"""The extender beside a real kube-scheduler: when refused pods are tried again, and who may call it."""

import json
import sys
from collections.abc import Iterator, Sequence

import pytest
from tests.e2e.observe import PODS, get, versions, watch_until
from tests.e2e.outcomes import is_refused, is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.kube.paths import leases
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

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


def await_pod(cluster: LocalCluster, namespace: str, name: str, state: str) -> None:
    holds = {"running": is_running, "refused": is_refused}[state]
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and holds(pod) for pod in pods),
        what=f"{name} {state}",
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
    await_pod(cluster, namespace, "next", "running")


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
    """Looks at every version of the Lease: it may be held for less time than a watch takes to start."""
    name = "gpushare-extender"

    def is_held(lease: Json) -> bool:
        return bool(lease["spec"].get("holderIdentity"))

    def is_free(leases: Sequence[Json]) -> bool:
        return not any(is_held(lease) for lease in leases if lease["metadata"]["name"] == name)

    watch_until(cluster, leases(SYSTEM), is_free, what="the Lease of earlier binds given back")
    with versions(cluster, leases(SYSTEM), name) as seen:
        create(cluster, namespace, [pod("bound", {"main": 4}, on="gpu-1")])
        wait_until("the Lease held", lambda: any(map(is_held, seen)))
        wait_until("the Lease given back", lambda: not is_held(seen[-1]))
