"""``kubectl gpushare why`` as somebody asks whose pod waits: what it says would help does help."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.observe import PODS, Json, is_true, watch_until
from tests.e2e.outcomes import is_refused, is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("two_cards")]

NODE = "gpu-1"


@pytest.fixture(scope="module")
def two_cards(product: Product) -> Iterator[None]:
    """A node with two cards of 16 units."""
    product.apply(policy("default", nodes=[NODE], cards=2))
    product.await_ready("default")
    yield
    product.delete("default")


def why(cluster: LocalCluster, namespace: str, *arguments: str, stdin: str = "") -> Json:
    """Returns what the command reports as JSON, with its exit status."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    program = str(Path(sys.executable).parent / "kubectl-gpushare")
    done = subprocess.run(
        [program, "why", "-n", namespace, "-o", "json", *arguments],
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout, done.stderr
    report: Json = json.loads(done.stdout)
    return {**report, "status": done.returncode}


def until(cluster: LocalCluster, namespace: str, name: str, holds: Callable[[Json], bool], what: str) -> Json:
    seen = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and holds(pod) for pod in pods),
        what=f"pod {name} {what}",
    )
    return next(pod for pod in seen if pod["metadata"]["name"] == name)


def run(cluster: LocalCluster, namespace: str, **units: int) -> None:
    for name, amount in units.items():
        create(cluster, namespace, [pod(name, {"main": amount})])
        until(cluster, namespace, name, is_running, "runs")


def refused(cluster: LocalCluster, namespace: str, name: str, units: int) -> Json:
    create(cluster, namespace, [pod(name, {"main": units})])
    until(cluster, namespace, name, is_refused, "is refused")
    return why(cluster, namespace, name)


def remedy(report: Json, code: str) -> Json:
    return next(remedy for remedy in report["remedies"] if remedy["code"] == code)


def test_a_pod_that_no_card_fits(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, a=10, b=9)
    report = refused(cluster, namespace, "big", 12)
    assert (report["state"], report["status"]) == ("Waiting", 1)
    (full,) = [finding for finding in report["findings"] if finding["isDecisive"]]
    assert full["code"] == "CardsFull"
    assert re.fullmatch(rf"{NODE} card \d: 7 of the 12 units free, held by {namespace}/b 9", full["nearest"])
    assert report["words"][0]["reason"] == "FailedScheduling"
    assert report["attempts"]["tried"] >= 1


def test_the_smaller_request_fits(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, a=10, b=9)
    smaller = remedy(refused(cluster, namespace, "big", 12), "SmallerRequest")
    units = smaller["units"]
    assert smaller["helps"]
    manifest = json.dumps(pod("more", {"main": units + 1}))
    assert why(cluster, namespace, "-f", "-", stdin=manifest)["status"] == 1
    assert why(cluster, namespace, "-f", "-", stdin=json.dumps(pod("small", {"main": units})))["status"] == 0
    run(cluster, namespace, small=units)


def test_the_pod_runs_once_those_that_are_named_are_gone(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, a=10, b=9)
    report = refused(cluster, namespace, "big", 12)
    for command in remedy(report, "PodsGone")["commands"]:
        cluster.kubectl(*command.split()[1:])
    until(cluster, namespace, "big", is_running, "runs")


def test_a_cordoned_card_would_take_it(cluster: LocalCluster, namespace: str, product: Product) -> None:
    cluster.kubectl("annotate", "gpusharenode", NODE, f"{CORDON_ANNOTATION}=1")
    try:
        product.share_node(NODE, lambda node: is_true(node, "CardsCordoned"), what="the card is cordoned")
        run(cluster, namespace, a=10)
        uncordon = remedy(refused(cluster, namespace, "big", 12), "Uncordon")
        assert uncordon["commands"] == [f"kubectl gpushare uncordon {NODE} 1"]
    finally:
        cluster.kubectl("annotate", "gpusharenode", NODE, f"{CORDON_ANNOTATION}-")
    until(cluster, namespace, "big", is_running, "runs")


def test_a_pod_that_runs(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, a=4, b=9)
    report = why(cluster, namespace, "pod/a")
    running = until(cluster, namespace, "a", is_running, "runs")
    allocation = json.loads(running["metadata"]["annotations"]["gpushare.io/allocation"])
    (card,) = report["cards"]
    assert (report["state"], report["status"], report["node"]) == ("Running", 0, NODE)
    assert (card["uuid"], card["units"]) == (next(iter(allocation["cards"])), 4)
    assert [neighbour["name"] for neighbour in card["neighbours"]] == ["b"]
    assert len(report["choice"]) > 1
