"""``kubectl gpushare audit`` as a user has it, on the shared cluster."""

import json
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from tests.e2e.books import KUBELET
from tests.e2e.command_line import COMMANDS, gpushare
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import PODS, SHARE_NODES, Json, condition, is_true, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import ROOT, SYSTEM, Product
from tests.e2e.workloads import CARD, SLICE, create, pod

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("shared_policy")]

NODE = "gpu-1"
SETTLE = ("--settle", "60")
"""On a busy machine plugin and kubelet tell of a pod that has just started seconds after each other."""


def run_pod(cluster: LocalCluster, namespace: str, name: str, *, on: str = NODE) -> None:
    create(cluster, namespace, [pod(name, {"main": 4}, on=on)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
    )


@pytest.mark.usefixtures("books_agree")
def test_books_that_agree(cluster: LocalCluster, namespace: str) -> None:
    run_pod(cluster, namespace, "audited")
    folder = str(cluster.node_path(NODE, KUBELET))
    done = gpushare(cluster, "audit", "--node", NODE, "--host-folder", folder, *SETTLE)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "No difference. Compared on 1 node" in done.stdout
    assert "PodResources, checkpoint, stored environments" in done.stdout


@pytest.fixture
def kubeconfig_there(cluster: LocalCluster) -> Iterator[str]:
    """One of the administrator's on a control-plane node, by the address that the API server has there."""
    path = "/etc/kubernetes/admin-of-test.conf"
    own = yaml.safe_load(cluster.kubeconfig.read_text())
    there = yaml.safe_load(cluster.node_path("control-plane-1", "/etc/kubernetes/scheduler.conf").read_text())
    own["clusters"][0]["cluster"] = there["clusters"][0]["cluster"]
    file = cluster.node_path("control-plane-1", path)
    file.write_text(yaml.safe_dump(own))
    yield path
    file.unlink()


def test_with_the_ledger_on_a_control_plane_node(
    cluster: LocalCluster, namespace: str, kubeconfig_there: str
) -> None:
    run_pod(cluster, namespace, "audited")
    program = str(COMMANDS / "kubectl-gpushare")
    url = f"https://127.0.0.1:{EXTENDER_PORT}"
    options = ["audit", "--kubeconfig", kubeconfig_there, "--extender", url, *SETTLE]
    done = cluster.node_exec("control-plane-1", [sys.executable, program, *options], timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No difference. Compared on 3 nodes" in done.stdout
    assert "the extender's ledger" in " ".join(done.stdout.split()), "whatever columns the caller has"


def test_a_plugin_that_hangs_is_noticed(cluster: LocalCluster, namespace: str) -> None:
    """The pod is gone, and the status goes on counting it."""
    run_pod(cluster, namespace, "forced")
    paused = plugin_pod(cluster)
    cluster.kill_container(namespace=SYSTEM, pod=paused, container="plugin", signal=signal.SIGSTOP)
    try:
        cluster.kubectl("delete", "pod", "forced", "-n", namespace, "--force", "--grace-period=0")
        found = the_only_difference(cluster, "audit", "--node", NODE)
    finally:
        cluster.kill_container(namespace=SYSTEM, pod=paused, container="plugin", signal=signal.SIGCONT)
    assert (found["kind"], found["node"], found["pod"]) == ("OrphanMark", NODE, f"{namespace}/forced")
    assert "the API server does not have it" in found["sentence"]
    wait_until(
        "the auditor finds nothing any more",
        lambda: gpushare(cluster, "audit", "--node", NODE, "--settle", "0").returncode == 0,
        interval=0.5,
    )


def the_only_difference(cluster: LocalCluster, *command: str) -> Json:
    """Waits until ``command`` reports one difference alone, and returns it: kubelet, plugin and extender
    learn of a change one after the other."""
    found: list[Json] = []

    def is_alone() -> bool:
        done = gpushare(cluster, *command, "--settle", "1", "-o", "json")
        found[:] = json.loads(done.stdout)["differences"]
        return done.returncode == 1 and len(found) == 1

    wait_until("one difference is left", is_alone, interval=0.5, explain=lambda: str(found))
    return found[0]


def test_a_pod_that_the_kubelet_started_without_units_is_named(cluster: LocalCluster, namespace: str) -> None:
    """A kubelet does not refuse an extended resource that it does not know: before a plugin registered, or
    here because the node offers none of that class."""
    node, asked = unknown_resource(cluster)
    run_pod(cluster, namespace, "before", on=node)  # here the kubelet counts anew what it has given out
    create(cluster, namespace, [pod("blind", {"main": 2}, node=node, resource=asked)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == "blind" and is_running(pod) for pod in pods),
        what="it runs",
    )
    folder = str(cluster.node_path(node, KUBELET))
    for where in ([], ["--host-folder", folder]):
        found = the_only_difference(cluster, "audit", "--node", node, *where)
        assert (found["kind"], found["pod"]) == ("WithoutUnits", f"{namespace}/blind")
        assert f"asks for 2 of {asked}" in found["sentence"]
    await_ledger(cluster, node, "False", f"{namespace}/blind")
    cluster.kubectl("delete", "pod", "blind", "-n", namespace)
    await_ledger(cluster, node, "True", "")


def unknown_resource(cluster: LocalCluster) -> tuple[str, str]:
    """Returns a node, and a resource of ours that its kubelet does not know. One that a policy of an earlier
    module offered there it remembers for five minutes, and refuses pods that ask for it."""

    def unknown() -> list[tuple[str, str]]:
        asked = ((node, resource) for node in WORKERS for resource in (SLICE, CARD))
        return [(node, resource) for node, resource in asked if resource not in known_to(cluster, node)]

    return wait_until("a kubelet does not know all our resources", unknown, timeout=400, interval=1)[0]


def known_to(cluster: LocalCluster, node: str) -> Collection[str]:
    """Returns the resources of plugins that the node's kubelet has in its checkpoint."""
    checkpoint = cluster.node_path(node, f"{KUBELET}/device-plugins/kubelet_internal_checkpoint")
    known: Json = json.loads(checkpoint.read_bytes())["Data"]["RegisteredDevices"]
    return known.keys()


def await_ledger(cluster: LocalCluster, node: str, status: str, word: str) -> None:
    """Waits until the plugin on ``node`` says so of its books."""

    def told(share_nodes: Sequence[Json]) -> bool:
        mine = next(share_node for share_node in share_nodes if share_node["metadata"]["name"] == node)
        found = condition(mine, "LedgerInSync")
        return found.get("status") == status and word in found.get("message", "")

    watch_until(cluster, SHARE_NODES, told, what=f"LedgerInSync is {status}")


def plugin_pod(cluster: LocalCluster) -> str:
    """Returns the name of the plugin's pod on NODE."""
    selector = "--selector=app.kubernetes.io/component=plugin"
    listed = json.loads(cluster.kubectl("get", "pods", "-n", SYSTEM, selector, "-o", "json"))["items"]
    return str(next(pod["metadata"]["name"] for pod in listed if pod["spec"]["nodeName"] == NODE))


def test_while_a_policy_is_there_all_of_it_is_named(cluster: LocalCluster, product: Product) -> None:
    assert is_true(product.await_ready("default"), "Ready")
    done = gpushare(cluster, "audit", "--residue")
    assert done.returncode == 1, done.stderr
    for expected in (
        "GPUSharePolicy default: the policy still exists",
        f"GPUShareNode {NODE}: ",
        f"Node {NODE}: the label gpushare.io/policy=default is gpushare's",
        f"DaemonSet {SYSTEM}/gpushare-plugin-default: ",
        f"DaemonSet {SYSTEM}/gpushare-extender: ",
    ):
        assert expected in done.stdout


def test_an_administrator_audits_all_books_by_one_command(cluster: LocalCluster, namespace: str) -> None:
    run_pod(cluster, namespace, "audited")
    folder = str(ROOT / "config" / "auditor" / "cluster")
    cluster.kubectl("apply", "-k", folder)
    try:
        wait_until(
            "every node's books and the ledger are compared",
            lambda: (len(agreeing(cluster, NODES_BOOKS)), len(agreeing(cluster, LEDGER))) == (3, 1),
            timeout=TWO_AUDITS,
            explain=lambda: auditors(cluster),
        )
    finally:
        cluster.kubectl("delete", "-k", folder)
    assert "gpushare-auditor" not in cluster.kubectl("get", "daemonsets,serviceaccounts", "-n", SYSTEM)


NODES_BOOKS = "PodResources, checkpoint, stored environments."
LEDGER = "annotations, GPUShareNodes, the extender's ledger."
TWO_AUDITS = 480
"""Seconds. The next audit comes five minutes after the first, which a busy machine may disturb."""


def agreeing(cluster: LocalCluster, books: str) -> set[str]:
    """Returns the pods whose audit has found no difference between ``books``."""
    lines = [line for line in auditors(cluster).splitlines() if "No difference. Compared on" in line]
    return {line.partition(" ")[0] for line in lines if books in line}


def auditors(cluster: LocalCluster) -> str:
    """Returns the result as docs/audit.md says; nothing while a container is being made."""
    try:
        return cluster.kubectl(
            "logs", "-n", SYSTEM, "-l", "app.kubernetes.io/name=gpushare-auditor", "--prefix", "--tail=-1"
        )
    except LocalClusterError as error:
        return str(error)


def test_without_an_api_server_it_cannot_look(cluster: LocalCluster, tmp_path: Path) -> None:
    done = gpushare(cluster, "audit", "--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "there is no kubeconfig" in done.stderr
