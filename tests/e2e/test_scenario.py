"""The main job: what a user sees who asks for units of a card."""

import json

import pytest
from tests.e2e.books import Key, read_books
from tests.e2e.fixtures import await_agreement, await_released
from tests.e2e.observe import PODS, Json, condition, get, watch_until
from tests.e2e.outcomes import is_running, summary
from tests.e2e.product import Product
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy")]


def run_pod(cluster: LocalCluster, namespace: str, name: str, **units: int) -> None:
    create(cluster, namespace, [pod(name, units)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
    )


def refusal(cluster: LocalCluster, namespace: str, name: str) -> str:
    """The scheduler's message on a pod that waits."""
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(
            pod["metadata"]["name"] == name and condition(pod, "PodScheduled").get("message") for pod in pods
        ),
        what=f"pod {name} is refused with a reason",
    )
    waiting = next(pod for pod in pods if pod["metadata"]["name"] == name)
    return str(condition(waiting, "PodScheduled")["message"])


@pytest.mark.usefixtures("books_agree")
def test_small_pods_share_a_card_and_bigger_ones_get_another(cluster: LocalCluster, namespace: str) -> None:
    for units in (4, 8, 12):
        run_pod(cluster, namespace, f"units-{units}", main=units)
    cards = {key.pod: share.card for key, share in read_books(cluster, namespace).annotation.items()}
    assert cards["units-4"] == cards["units-8"]
    assert cards["units-12"] != cards["units-4"]


def test_a_pod_that_no_card_can_hold_waits_and_says_why(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("units-20", {"main": 20})])
    message = refusal(cluster, namespace, "units-20")
    assert "insufficient GPU memory in one card: asked 20, largest free 16" in message
    watch_until(
        cluster,
        f"/api/v1/namespaces/{namespace}/events",
        lambda events: any(
            "insufficient GPU memory in one card: asked 20" in event["message"] for event in events
        ),
        what="an Event says so, too",
        describe=lambda events: [event["message"] for event in events],
    )


@pytest.mark.usefixtures("books_agree")
def test_all_containers_of_a_pod_get_one_card(cluster: LocalCluster, namespace: str) -> None:
    run_pod(cluster, namespace, "pair", left=5, right=7)
    book = read_books(cluster, namespace).environment
    left, right = (book[Key(namespace, "pair", name)] for name in ("left", "right"))
    assert (left.units, right.units) == (5, 7)
    assert left.card == right.card


@pytest.mark.usefixtures("books_agree")
def test_a_pod_bound_past_the_scheduler_gets_a_card_and_enters_the_books(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [pod("direct", {"main": 3}, node="gpu-1")])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(
            is_running(pod) and "gpushare.io/allocation" in pod["metadata"].get("annotations", {})
            for pod in pods
        ),
        what="the pod runs and its allocation was written down",
    )
    assert read_books(cluster, namespace).annotation[Key(namespace, "direct", "main")].units == 3


@pytest.mark.usefixtures("books_agree")
@pytest.mark.parametrize("keep", ["true", "false"])
def test_a_copy_for_debugging_is_placed_on_its_own(cluster: LocalCluster, namespace: str, keep: str) -> None:
    run_pod(cluster, namespace, "original", main=12)
    annotations = f"--keep-annotations={keep}"
    debugger = ("--image=busybox:stable", "--container=debugger", "--attach=false", annotations)
    command = ("--", "sleep", "infinity")
    cluster.kubectl("debug", "original", "--copy-to=copy", "-n", namespace, *debugger, *command)
    await_own_allocation(cluster, namespace, "copy")
    book = read_books(cluster, namespace).environment
    original, copy = (book[Key(namespace, name, "main")] for name in ("original", "copy"))
    assert (original.units, copy.units) == (12, 12)
    assert copy.card != original.card


@pytest.mark.parametrize("to", ["scheduler", "the same node"])
@pytest.mark.usefixtures("books_agree")
def test_a_restored_backup_is_placed_anew(cluster: LocalCluster, namespace: str, to: str) -> None:
    """Its card was given to somebody else meanwhile."""
    create(cluster, namespace, [pod("saved", {"main": 12}, on="gpu-2")])
    saved = await_own_allocation(cluster, namespace, "saved")
    cluster.kubectl("delete", "pod", "saved", "-n", namespace)
    await_released(cluster, namespace)
    create(cluster, namespace, [pod("next", {"main": 12}, on="gpu-2")])
    following = await_own_allocation(cluster, namespace, "next")
    assert card(following) == card(saved)
    del saved["metadata"]["resourceVersion"]
    if to == "scheduler":
        del saved["spec"]["nodeName"]
    create(cluster, namespace, [saved])
    restored = await_own_allocation(cluster, namespace, "saved")
    assert restored["metadata"]["uid"] != saved["metadata"]["uid"]
    assert card(restored) != card(following)


@pytest.mark.usefixtures("books_agree")
def test_an_annotation_forged_while_the_policies_were_off_is_put_right(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    create(cluster, namespace, [pod("honest", {"main": 4}, on="gpu-1")])
    honest = await_own_allocation(cluster, namespace, "honest")
    text = honest["metadata"]["annotations"]["gpushare.io/allocation"]
    forged = text.replace('"node":"gpu-1"', '"node":"gpu-2"').replace('":4', '":1')
    forge = ("annotate", "pod", "honest", "-n", namespace, "--overwrite", f"gpushare.io/allocation={forged}")
    with pytest.raises(LocalClusterError, match="only gpushare may change the annotation"):
        cluster.kubectl(*forge)
    cluster.kubectl("delete", "validatingadmissionpolicybinding", "gpushare-pods")
    try:
        wait_until("the policy is off", lambda: is_allowed(cluster, *forge))
        cluster.kubectl(*forge)
    finally:
        product.install()
        wait_until("the policy is on", lambda: not is_allowed(cluster, *forge))
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: pods[0]["metadata"]["annotations"]["gpushare.io/allocation"] == text,
        what="the plugin has put the annotation right",
    )


def is_allowed(cluster: LocalCluster, *command: str) -> bool:
    """Whether the API server would do that now."""
    try:
        cluster.kubectl(*command, "--dry-run=server")
    except LocalClusterError:
        return False
    return True


def await_own_allocation(cluster: LocalCluster, namespace: str, name: str) -> Json:
    """Wait until the pod of that name runs with an allocation of its own, and return it."""

    def runs(each: Json) -> bool:
        text = each["metadata"].get("annotations", {}).get("gpushare.io/allocation", "")
        own = f'"uid":"{each["metadata"]["uid"]}"' in text
        return each["metadata"]["name"] == name and is_running(each) and own

    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(map(runs, pods)),
        what=f"pod {name} runs with an allocation of its own",
        describe=summary,
    )
    return next(pod for pod in pods if pod["metadata"]["name"] == name)


def card(pod: Json) -> str:
    """The card in the pod's annotation."""
    (only,) = json.loads(pod["metadata"]["annotations"]["gpushare.io/allocation"])["cards"]
    return str(only)


def test_a_pod_bound_past_the_scheduler_that_fits_no_card_fails_with_the_reason(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [pod("direct", {"main": 20}, node="gpu-1")])
    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["status"].get("phase") == "Failed" for pod in pods),
        what="the kubelet rejects the pod",
    )
    assert "asked 20" in pods[0]["status"]["message"]
    assert "largest free" in pods[0]["status"]["message"]


def test_pods_without_gpu_are_not_touched(cluster: LocalCluster, namespace: str) -> None:
    run_pod(cluster, namespace, "plain", main=0)
    (plain,) = get(cluster, PODS.format(namespace=namespace))["items"]
    assert "gpushare.io/allocation" not in plain["metadata"].get("annotations", {})


@pytest.mark.usefixtures("books_agree")
def test_init_containers_lend_their_units_to_the_others(cluster: LocalCluster, namespace: str) -> None:
    body = pod("staged", {"main": 6})
    body["spec"]["initContainers"] = pod("", {"prepare": 10}, command="true")["spec"]["containers"]
    create(cluster, namespace, [body])
    (running,) = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="the pod runs",
    )
    assert '"cards":{"' in running["metadata"]["annotations"]["gpushare.io/allocation"]
    assert read_books(cluster, namespace).environment[Key(namespace, "staged", "main")].units == 6


def test_units_come_back_when_a_pod_ends(cluster: LocalCluster, namespace: str) -> None:
    """A whole card is used twice by pods that may only run on one node with every other card full."""
    full = [pod(f"full-{number}", {"main": 16}, on="gpu-2") for number in range(8)]
    create(cluster, namespace, full)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: len(pods) == 8 and all(is_running(pod) for pod in pods),
        what="8 pods fill the node",
    )
    create(cluster, namespace, [pod("next", {"main": 16}, on="gpu-2")])
    assert "Insufficient gpushare.io/memory" in refusal(cluster, namespace, "next")
    cluster.kubectl("delete", "pod", "full-3", "-n", namespace)
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == "next" and is_running(pod) for pod in pods),
        what="the waiting pod gets the card that became free",
    )
    await_agreement(cluster, namespace)
