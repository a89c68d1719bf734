"""Pods whose own annotations leave no room for ours, on a real API server: nobody else pays for them.

Kubernetes does not look at the size when a pod is bound, and refuses every later write: to its status, too.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.e2e.books import read_books
from tests.e2e.busy_server import until_decided
from tests.e2e.observe import PODS, condition, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.test_manifests import ANNOTATION, allocation, as_extender, as_plugin_of, uid_of
from tests.e2e.workloads import MEMORY, create, pod

from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.dialects.annotation_room import (
    MAX_ANNOTATIONS,
    MAX_BYTES,
    MAX_CONTAINERS,
    ROOM_BYTES,
    size_of,
)
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.errors import ApiError
from gpushare_core.placement.modes.table import MAX_UNITS
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

ALLOWED = MAX_BYTES - ROOM_BYTES
LIMITED = "gpushare-requests"
"""The policy that bounds what new pods bring."""


@pytest.fixture(scope="module", autouse=True)
def one_card(product: Product) -> Iterator[None]:
    """One worker of one card of 16 units."""
    with product.in_force(policy("default", nodes=["gpu-1"], cards=1)):
        yield


@pytest.fixture
def unlimited(cluster: LocalCluster, namespace: str) -> Iterator[None]:
    """Admission lets all pods pass, as on a cluster whose administrator has taken its policies away."""
    with without_limits(cluster, namespace):
        yield


@contextmanager
def without_limits(cluster: LocalCluster, namespace: str) -> Iterator[None]:
    binding = json.loads(cluster.kubectl("get", "validatingadmissionpolicybinding", LIMITED, "-o", "json"))
    kept = {key: binding["metadata"][key] for key in ("name", "annotations")}
    cluster.kubectl("delete", "validatingadmissionpolicybinding", LIMITED)
    try:
        wait_until("pods pass", lambda: not refusal(cluster, namespace, filled(room=10)))
        yield
    finally:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps({**binding, "metadata": kept}))
        wait_until("pods are refused", lambda: refusal(cluster, namespace, filled(room=10)))


def asking(
    annotations: dict[str, str], *, resource: str = MEMORY, containers: int = 1, name: str = "a"
) -> Json:
    names = {f"c{number}": 1 for number in range(containers)}
    body = pod(name, names, resource=resource)
    body["metadata"]["annotations"] = annotations
    return body


def filler(size: int) -> dict[str, str]:
    return {"filler": "x" * (size - len("filler"))}


def filled(*, room: int, name: str = "a", units: int = 16) -> Json:
    """A pod that asks for the whole card, with so many bytes left of what Kubernetes allows."""
    body = pod(name, {"main": units})
    body["metadata"]["annotations"] = filler(MAX_BYTES - room)
    return body


def refusal(cluster: LocalCluster, namespace: str, body: Json) -> str:
    """Returns what the API server says to whoever would make the pod; empty where it may be made."""
    way = ("create", "--dry-run=server", "-n", namespace, "-f", "-")
    try:
        until_decided(lambda: cluster.kubectl(*way, stdin=json.dumps(body)))
    except LocalClusterError as error:
        return str(error)
    return ""


def patch(cluster: LocalCluster, namespace: str, metadata: Json, *way: str, name: str = "a") -> None:
    text = json.dumps({"metadata": metadata})
    options = ("-n", namespace, "--type=merge", "--patch-file=/dev/stdin", *way)
    until_decided(lambda: cluster.kubectl("patch", "pod", name, *options, stdin=text))


def await_pod(cluster: LocalCluster, namespace: str, name: str, what: str, holds: str) -> Json:
    def fits(each: Json) -> bool:
        message = condition(each, "PodScheduled").get("message", "")
        return is_running(each) if holds == "running" else holds in message

    seen = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and fits(pod) for pod in pods),
        what=what,
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    return next(pod for pod in seen if pod["metadata"]["name"] == name)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        *(
            pytest.param(
                asking(filler(MAX_BYTES - 10), resource=resource), ["262134 bytes", "196608"], id=resource
            )
            for resource in RESOURCES
        ),
        pytest.param(
            asking(filler(ALLOWED + 1)), [f"{ALLOWED + 1} bytes", "shorten them"], id="one byte more"
        ),
        pytest.param(
            asking({"filler": "\N{GRINNING FACE}" * (ALLOWED // 4)}),
            [f"{ALLOWED + 6} bytes"],
            id="multi-byte",
        ),
        pytest.param(
            asking({str(number): "" for number in range(MAX_ANNOTATIONS + 1)}),
            [f"{MAX_ANNOTATIONS + 1} annotations", f"at most {MAX_ANNOTATIONS}"],
            id="many tiny ones",
        ),
        pytest.param(
            asking({f"{number:x}": "" for number in range(60_000)}), ["60000 annotations"], id="very many"
        ),
        pytest.param(
            asking({}, containers=MAX_CONTAINERS + 1),
            [f"{MAX_CONTAINERS + 1} containers", "several pods"],
            id="containers",
        ),
    ],
)
def test_a_pod_that_leaves_too_little_room_is_refused_with_figures(
    cluster: LocalCluster, namespace: str, body: Json, words: list[str]
) -> None:
    told = refusal(cluster, namespace, body)
    assert LIMITED in told
    assert [word for word in words if word not in told] == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(asking(filler(ALLOWED)), id="to the byte"),
        pytest.param(asking({"filler": "\N{GRINNING FACE}" * ((ALLOWED - 6) // 4)}), id="multi-byte"),
        pytest.param(
            asking(
                {f"{number:0>60}": "x" * 130 for number in range(MAX_ANNOTATIONS)},
                containers=MAX_CONTAINERS,
            ),
            id="the most of everything",
        ),
        pytest.param(asking({ANNOTATION: "x" * 200_000}), id="a copied allocation is written over"),
        pytest.param(asking(filler(MAX_BYTES - 10), resource="example.com/other"), id="no affair of ours"),
    ],
)
def test_a_pod_that_leaves_enough_may_be_made(cluster: LocalCluster, namespace: str, body: Json) -> None:
    assert refusal(cluster, namespace, body) == ""


@pytest.mark.parametrize("way", [[], ["--subresource=status"]], ids=["pod", "status"])
def test_nor_may_a_pod_be_filled_later(cluster: LocalCluster, namespace: str, way: list[str]) -> None:
    body = asking(filler(1000))
    body["spec"]["schedulerName"] = "nobody"
    create(cluster, namespace, [body])
    with pytest.raises(LocalClusterError, match="would take 196609 bytes"):
        patch(cluster, namespace, {"annotations": filler(ALLOWED + 1)}, *way)
    with pytest.raises(LocalClusterError, match="would have 60001 annotations"):
        patch(cluster, namespace, {"annotations": {f"{number:x}": "" for number in range(60_000)}}, *way)
    patch(cluster, namespace, {"annotations": filler(ALLOWED)}, *way)


def test_a_plugin_may_write_on_a_pod_with_the_most_annotations(cluster: LocalCluster, namespace: str) -> None:
    """Within what the rules for its writes may cost."""
    body = asking({f"{number:0>60}": "x" * 130 for number in range(MAX_ANNOTATIONS)})
    body["spec"]["schedulerName"] = "nobody"
    body["spec"]["nodeName"] = "gpu-2"
    create(cluster, namespace, [body])
    path, text = f"{PODS.format(namespace=namespace)}/a", allocation("gpu-2", uid_of(cluster, namespace, "a"))
    as_plugin_of(cluster, "gpu-2", path, {"metadata": {"annotations": {ANNOTATION: text}}})
    with pytest.raises(ApiError, match="may change only the annotation gpushare"):
        as_plugin_of(cluster, "gpu-2", path, {"metadata": {"annotations": {"another": "x"}}})


def test_a_pod_that_was_large_before_can_be_managed(cluster: LocalCluster, namespace: str) -> None:
    """Whoever does not add to its annotations is let pass, such as its kubelet and who mends it."""
    body = filled(room=1000)
    body["spec"]["schedulerName"] = "nobody"
    with without_limits(cluster, namespace):
        create(cluster, namespace, [body])
    with pytest.raises(LocalClusterError, match="remove some"):
        patch(cluster, namespace, {"annotations": {"more": "x"}})
    patch(cluster, namespace, {"labels": {"app": "bank"}, "finalizers": ["example.com/hold"]})
    patch(cluster, namespace, {"finalizers": []}, "--subresource=status")
    patch(cluster, namespace, {"finalizers": []})
    patch(cluster, namespace, {"annotations": {"filler": "y" * (MAX_BYTES - 2000)}})
    patch(cluster, namespace, {"annotations": {"filler": None}})


@pytest.fixture
def fine_units(product: Product) -> Iterator[str]:
    """A worker whose one card has more units than a pod may have."""
    with product.in_force(policy("fine", nodes=["gpu-2"], unit="1Mi", cards=1, memory="80Gi")):
        yield "gpu-2"


def test_a_pod_of_the_most_units_runs_and_ends_and_one_of_more_is_refused(
    cluster: LocalCluster, namespace: str, fine_units: str
) -> None:
    """Its kubelet writes every unit into its status: one with 80,000 stayed Pending for ever."""
    create(
        cluster,
        namespace,
        [
            pod("waits", {"main": MAX_UNITS + 1}, on=fine_units),
            pod("past", {"a": MAX_UNITS // 2, "b": MAX_UNITS // 2 + 1}, node=fine_units),
        ],
    )
    await_pod(cluster, namespace, "waits", "it waits with the reason", f"a pod may have at most {MAX_UNITS}")
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(
            f"a pod may have at most {MAX_UNITS}" in pod["status"].get("message", "") for pod in pods
        ),
        what="the plugin refuses the other, with the reason",
    )
    create(cluster, namespace, [pod("most", {"main": MAX_UNITS}, on=fine_units)])
    await_pod(cluster, namespace, "most", "it runs", "running")
    cluster.kubectl("delete", "pod", "most", "-n", namespace, "--timeout=240s")


def is_told(event: Json) -> bool:
    return event["reason"] == "AnnotationsFull" and "remove annotations from the pod" in event["note"]


@pytest.mark.usefixtures("unlimited")
def test_without_admission_it_is_not_bound_and_its_card_stays_free(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [filled(room=10, name="bomb")])
    waiting = await_pod(cluster, namespace, "bomb", "it waits with the reason", "remove annotations from")
    assert (
        f"the pod has {MAX_BYTES - 10} bytes of annotations" in condition(waiting, "PodScheduled")["message"]
    )
    create(cluster, namespace, [pod("other", {"main": 16})])
    await_pod(cluster, namespace, "other", "another one has the card", "running")
    cluster.kubectl("delete", "pod", "other", "-n", namespace)
    cluster.kubectl("annotate", "pod", "bomb", "filler-", "-n", namespace)
    bound = await_pod(cluster, namespace, "bomb", "with room it has the card", "running")
    assert size_of(bound["metadata"]["annotations"]) < 2000


def test_one_that_was_bound_before_ends_once_its_annotations_are_taken_away(
    cluster: LocalCluster, namespace: str
) -> None:
    """As an extender of before did it. The documents say to administrators what to do."""
    body = filled(room=10)
    body["spec"]["schedulerName"] = "nobody"
    with without_limits(cluster, namespace):
        create(cluster, namespace, [body])
    path, uid = PODS.format(namespace=namespace), uid_of(cluster, namespace, "a")
    metadata = {"name": "a", "uid": uid, "annotations": {ANNOTATION: allocation("gpu-1", uid)}}
    target = {"kind": "Node", "name": "gpu-1"}
    as_extender(
        cluster,
        f"{path}/a/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target},
    )
    assert size_of(get(cluster, f"{path}/a")["metadata"]["annotations"]) > MAX_BYTES
    with pytest.raises(LocalClusterError, match="may not be more than 262144 bytes"):
        patch(cluster, namespace, {"labels": {"app": "bank"}})
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    watch_until(cluster, events, lambda seen: any(map(is_told, seen)), what="the plugin tells the pod")
    wait_until(
        "the auditor names it",
        lambda: (
            DifferenceKind.UNWRITABLE
            in {difference.kind for difference in read_books(cluster, namespace).differences()}
        ),
        interval=0.5,
    )
    cluster.kubectl("delete", "pod", "a", "-n", namespace, "--wait=false")
    cluster.kubectl("annotate", "pod", "a", "filler-", "-n", namespace)
    watch_until(cluster, path, lambda pods: not pods, what="it is gone")
