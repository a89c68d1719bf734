"""``kubectl gpushare why`` as somebody asks whose pod waits: what it says would help does help."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.fixtures import own_namespace
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
    with product.in_force(policy("default", nodes=[NODE], cards=2)):
        yield


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
        timeout=240,
        check=False,
    )
    assert done.stdout, done.stderr
    report: Json = json.loads(done.stdout)
    return {**report, "status": done.returncode}


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What is said on the way, of two cards of 16 units."""

    namespace: str
    cordoned: Json
    """Of a pod of 12 units, while one card has 10 of 16 in use and the other is cordoned."""
    full: Json
    """Of a pod of 8 units beside pods of 10 and of 12."""
    larger: Json
    """Of a manifest that asks for one unit more than what is said to fit."""
    smaller: Json
    running: Json
    card_of_running: str
    """UUID, by the annotation of the pod that runs."""


@pytest.fixture(scope="module")
def story(cluster: LocalCluster, product: Product) -> Iterator[Story]:
    """Each thing that is said to help is done, and the pod has to run then: one pod after the other, as each
    needs the cards that the others leave."""
    cluster.kubectl("annotate", "gpusharenode", NODE, f"{CORDON_ANNOTATION}=1")
    product.share_node(NODE, lambda node: is_true(node, "CardsCordoned"), what="the card is cordoned")
    with own_namespace(cluster) as namespace:
        create(cluster, namespace, [pod("a", {"main": 10})])
        running = until(cluster, namespace, a=is_running)["a"]
        create(cluster, namespace, [pod("big", {"main": 12})])
        until(cluster, namespace, big=is_refused)
        cordoned = why(cluster, namespace, "big")
        cluster.kubectl("annotate", "gpusharenode", NODE, f"{CORDON_ANNOTATION}-")
        until(cluster, namespace, big=is_running)

        create(cluster, namespace, [pod("more", {"main": 8})])
        until(cluster, namespace, more=is_refused)
        await_event(cluster, namespace, "more")
        full = why(cluster, namespace, "more")
        units = remedy(full, "SmallerRequest")["units"]
        larger = why(cluster, namespace, "-f", "-", stdin=json.dumps(pod("larger", {"main": units + 1})))
        smaller = why(cluster, namespace, "-f", "-", stdin=json.dumps(pod("small", {"main": units})))
        create(cluster, namespace, [pod("small", {"main": units})])
        until(cluster, namespace, small=is_running)
        report = why(cluster, namespace, "pod/a")
        for command in remedy(full, "PodsGone")["commands"]:
            cluster.kubectl(*command.split()[1:])
        until(cluster, namespace, more=is_running)
        allocation = json.loads(running["metadata"]["annotations"]["gpushare.io/allocation"])
        yield Story(
            namespace=namespace,
            cordoned=cordoned,
            full=full,
            larger=larger,
            smaller=smaller,
            running=report,
            card_of_running=next(iter(allocation["cards"])),
        )


def until(cluster: LocalCluster, namespace: str, **pods: Callable[[Json], bool]) -> dict[str, Json]:
    """Waits until what is given of each pod holds, and returns them by name."""
    seen = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda items: all(
            any(one["metadata"]["name"] == name and holds(one) for one in items)
            for name, holds in pods.items()
        ),
        what=", ".join(f"pod {name} {holds.__name__}" for name, holds in pods.items()),
    )
    return {one["metadata"]["name"]: one for one in seen}


def await_event(cluster: LocalCluster, namespace: str, name: str) -> None:
    """The scheduler tells of a pod that it refuses a moment after it has written the pod's condition."""
    watch_until(
        cluster,
        f"/api/v1/namespaces/{namespace}/events",
        lambda events: any(
            (event["involvedObject"]["name"], event["reason"]) == (name, "FailedScheduling")
            for event in events
        ),
        what=f"an Event tells why {name} waits",
        describe=lambda events: [(event["involvedObject"]["name"], event["reason"]) for event in events],
    )


def remedy(report: Json, code: str) -> Json:
    return next(remedy for remedy in report["remedies"] if remedy["code"] == code)


def test_a_pod_that_no_card_fits(story: Story) -> None:
    report = story.full
    assert (report["state"], report["status"]) == ("Waiting", 1)
    (full,) = [finding for finding in report["findings"] if finding["isDecisive"]]
    assert full["code"] == "CardsFull"
    nearest = rf"{NODE} card 0: 6 of the 8 units free, held by {story.namespace}/a 10"
    assert re.fullmatch(nearest, full["nearest"])
    assert report["words"][0]["reason"] == "FailedScheduling"
    assert report["attempts"]["tried"] >= 1


def test_the_smaller_request_is_the_largest_that_fits(story: Story) -> None:
    assert remedy(story.full, "SmallerRequest")["helps"]
    assert (story.larger["status"], story.smaller["status"]) == (1, 0)


def test_pods_that_are_to_go_are_named(story: Story) -> None:
    gone = remedy(story.full, "PodsGone")
    assert (gone["helps"], gone["pods"]) == (True, [f"{story.namespace}/a"])


def test_a_cordoned_card_would_take_it(story: Story) -> None:
    assert remedy(story.cordoned, "Uncordon")["commands"] == [f"kubectl gpushare uncordon {NODE} 1"]


def test_a_pod_that_runs(story: Story) -> None:
    report = story.running
    (card,) = report["cards"]
    assert (report["state"], report["status"], report["node"]) == ("Running", 0, NODE)
    assert (card["uuid"], card["units"]) == (story.card_of_running, 10)
    assert [neighbour["name"] for neighbour in card["neighbours"]] == ["small"]
    assert len(report["choice"]) > 1
