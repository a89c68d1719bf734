"""A plugin that hangs or loses its socket harms neither its node's kubelet nor what is said of its cards."""

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import CALL_SECONDS, PODS, POLICIES, condition, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.plugin_processes import PLUGIN, WATCHDOG, plugin_processes, running_processes, stopped
from tests.e2e.product import SYSTEM, Product, is_ready, named
from tests.e2e.workloads import create, pod, replica_set

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import SHARE_NODES, lease_path, leases
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy")]

NODE = "gpu-1"
REMOVALS = 5


def await_running(cluster: LocalCluster, namespace: str, name: str) -> None:
    def runs(pods: Any) -> bool:
        return any(pod["metadata"]["name"].startswith(name) and is_running(pod) for pod in pods)

    path = PODS.format(namespace=namespace)
    watch_until(cluster, path, runs, what=f"{name} runs", describe=statuses)


def statuses(pods: Any) -> list[Any]:
    return [(pod["metadata"]["name"], pod.get("status")) for pod in pods]


def await_registered(product: Product) -> None:
    product.share_node(NODE, lambda node: is_true(node, "Registered"), what="the plugin is back")


def test_ordinary_pods_start_although_the_plugin_hangs_in_the_middle_of_a_pod(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """The kubelet waited in GetPreferredAllocation for as long as anybody looked, and no pod started. Now the
    watchdog ends the plugin after fifteen seconds."""
    create(cluster, namespace, [pod("before", {"main": 3}, node=NODE)])
    await_running(cluster, namespace, "before")
    begun = time.monotonic()
    with stopped([plugin_processes(cluster, NODE)[PLUGIN]]):
        create(
            cluster, namespace, [pod("asks", {"main": 2}, node=NODE), pod("ordinary", {"main": 0}, node=NODE)]
        )
        await_running(cluster, namespace, "ordinary")
    print(f"ordinary pods started after {time.monotonic() - begun:.1f} s")
    await_registered(product)
    create(cluster, namespace, [replica_set("after", units=2, replicas=2)])
    await_running(cluster, namespace, "after")
    share_node = product.share_node(NODE, lambda node: is_true(node, "LedgerInSync"), what="the books agree")
    held = [share["name"] for card in share_node["status"]["cards"] for share in card.get("pods", ())]
    assert "before" in held, "nothing that was granted is lost"


def test_a_watchdog_that_hangs_is_replaced(cluster: LocalCluster, product: Product, namespace: str) -> None:
    """The plugin goes on meanwhile, and its liveness probe says what is wrong."""
    before = plugin_processes(cluster, NODE)
    with stopped([before[WATCHDOG]]):
        create(cluster, namespace, [pod("meanwhile", {"main": 2}, on=NODE)])
        await_running(cluster, namespace, "meanwhile")
        wait_until(
            "another container runs",
            lambda: (now := running_processes(cluster, NODE)) and before[PLUGIN] not in now,
            interval=0.5,
        )
    await_registered(product)


def patch_as(cluster: LocalCluster, account: str, path: str, patch: Json, *, node: str = "") -> None:
    """As the program of that ``account``, of a plugin with a token that is bound to its ``node``.

    Raises ``ApiError`` when it is refused.
    """
    bound = [f"--bound-object-name={node}", "--bound-object-kind=Node"] if node else []
    token = cluster.kubectl("create", "token", account, "-n", SYSTEM, *bound)
    credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)

    async def send() -> None:
        async with KubeClient(credentials, timeout=CALL_SECONDS) as client:
            await client.merge(path, patch)

    asyncio.run(send())


def test_nodes_have_their_units_back_however_often_somebody_removes_the_plugins_sockets(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """A kubelet of 1.37 refused a plugin for ever (``device plugin already connected``) if the plugin's old
    connection ended while it registered: after about one removal in eight."""
    for _ in range(REMOVALS):
        for node in WORKERS:
            remove_sockets(cluster, node)
        wait_until(
            "every plugin serves again", lambda: all(sockets(cluster, node) for node in WORKERS), interval=0.1
        )
    for node in WORKERS:
        product.share_node(node, lambda node: is_true(node, "Registered"), what=f"{node} is registered")
    create(cluster, namespace, [pod(f"on-{node}", {"main": 2}, on=node) for node in WORKERS])
    for node in WORKERS:
        await_running(cluster, namespace, f"on-{node}")


def sockets(cluster: LocalCluster, node: str) -> list[Path]:
    """The sockets of plugins, under their lasting names."""
    return [*cluster.node_path(node, "/var/lib/kubelet/device-plugins").glob("gpushare-*.sock")]


def remove_sockets(cluster: LocalCluster, node: str) -> None:
    for socket in sockets(cluster, node):
        socket.unlink(missing_ok=True)


def test_a_plugin_writes_the_lease_of_its_own_node_only(cluster: LocalCluster) -> None:
    renewed = {"spec": {"holderIdentity": NODE}}
    patch_as(cluster, "gpushare-plugin", lease_path(SYSTEM, f"plugin.{NODE}"), renewed, node=NODE)
    for name in ("plugin.gpu-2", "gpushare-operator", "gpushare-extender"):
        with pytest.raises(ApiError, match=f"may write only the Lease plugin.{NODE}"):
            patch_as(cluster, "gpushare-plugin", lease_path(SYSTEM, name), renewed, node=NODE)


@pytest.mark.parametrize("status", ["False", "True"])
def test_the_operator_says_of_a_plugins_report_only_that_it_is_unknown(
    cluster: LocalCluster, product: Product, status: str
) -> None:
    share_node = product.share_node(NODE, lambda node: is_true(node, "Registered"), what="it is registered")
    path = f"{SHARE_NODES}/{NODE}/status"
    conditions = [
        {**condition, "status": status, "reason": "Forged"}
        for condition in share_node["status"]["conditions"]
    ]
    other: list[Json] = [{"conditions": []}, {"units": {"total": 1, "allocated": 0}}]
    for forged in [{"conditions": conditions}, *other]:
        with pytest.raises(ApiError, match="the gpushare operator may only set conditions to Unknown"):
            patch_as(cluster, "gpushare-operator", path, {"status": forged})


def is_unready_by_node(policy: Json) -> bool:
    """Returns whether the policy is not Ready because ``NODE`` is not."""
    is_named = f"{NODE}: the node itself is not Ready" in condition(policy, "Ready").get("message", "")
    return not is_ready(policy) and is_named and policy["status"]["nodes"]["summary"] == "2/3"


def test_what_is_not_heard_of_is_not_true(cluster: LocalCluster, product: Product) -> None:
    """A node that has lost power went on being READY, with books that agree."""
    watch_until(
        cluster,
        leases(SYSTEM),
        lambda known: any(named(lease, f"plugin.{NODE}") for lease in known),
        what="the plugin has renewed its Lease",
    )
    cluster.kill_node(NODE)
    try:
        product.share_node(
            NODE,
            lambda node: (
                condition(node, "Registered").get("reason") == "NodeNotReady"
                and condition(node, "LedgerInSync").get("status") == "Unknown"
            ),
            what="READY and BOOKS are Unknown",
        )
        watch_until(
            cluster,
            POLICIES,
            lambda policies: any(
                named(policy, "default") and is_unready_by_node(policy) for policy in policies
            ),
            what=f"the policy is not Ready, because of {NODE}",
            describe=lambda policies: [policy.get("status") for policy in policies],
        )
    finally:
        cluster.start_node(NODE)
    await_registered(product)
    product.await_ready("default")
