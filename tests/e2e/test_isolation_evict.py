"""Pods that have more memory than they asked for are evicted where a policy says so: with simulated loads."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.e2e.observe import PODS, POLICIES, Json, condition, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, named, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_core.api.plugin_heartbeat import lease_name
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.kube import paths
from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("evicting_policy")]

NODE = "gpu-1"
GRACE = 5
SECONDS = 300.0
"""An interval of measuring, the grace, a renewal of the plugin's Lease, and a look of the operator at it."""


def asked(on_excess: str) -> Json:
    isolation = {"onExcess": on_excess, "graceSeconds": GRACE}
    body = policy("default", nodes=[NODE], cards=2, isolation=isolation)
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers", "intervalSeconds": 10}}
    return body


@pytest.fixture
def evicting_policy(product: Product) -> Iterator[None]:
    with product.in_force(asked("Evict")):
        yield


@pytest.fixture
def budget(cluster: LocalCluster, namespace: str) -> Iterator[Callable[[], None]]:
    """A PodDisruptionBudget that lets no pod of the namespace go; it returns how it is taken away."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"kept": "true"}}}
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": spec,
    }
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))

    def remove() -> None:
        cluster.kubectl("delete", "pdb", "kept", "-n", namespace, "--ignore-not-found")

    yield remove
    remove()


def start_exceeding(cluster: LocalCluster, namespace: str) -> None:
    """A pod that asks for 4Gi runs and has 6Gi."""
    body = pod("greedy", {"main": 4})
    load = {SIMULATED_LOAD_ANNOTATION: "main=6Gi"}
    body["metadata"] |= {"labels": {"kept": "true"}, "annotations": load}
    create(cluster, namespace, [body])
    until_pods(cluster, namespace, lambda pods: any(map(is_running, pods)), "the pod runs")


def until_pods(cluster: LocalCluster, namespace: str, holds: Callable[[Any], bool], what: str) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        holds,
        what=what,
        seconds=SECONDS,
        describe=lambda pods: [pod["status"].get("phase") for pod in pods],
    )


def until_evicted(cluster: LocalCluster, namespace: str) -> None:
    until_pods(cluster, namespace, lambda pods: all(map(is_ending, pods)), "the pod is evicted")


def is_ending(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def until_told(cluster: LocalCluster, namespace: str, reason: str) -> str:
    """Returns the note of the operator's Event with this reason."""

    def notes(events: Any) -> list[str]:
        return [event["note"] for event in events if event.get("reason") == reason]

    events = watch_until(
        cluster,
        paths.events(namespace),
        lambda events: bool(notes(events)),
        what=f"an Event {reason}",
        seconds=SECONDS,
        describe=lambda events: [(event.get("reason"), event.get("note")) for event in events],
    )
    return notes(events)[0]


def until_degraded(cluster: LocalCluster, reason: str) -> str:
    def found(policies: Any) -> list[Json]:
        return [condition(each, "Degraded") for each in policies if named(each, "default")]

    policies = watch_until(
        cluster,
        POLICIES,
        lambda policies: any(each.get("reason") == reason for each in found(policies)),
        what=f"Degraded says {reason}",
        seconds=SECONDS,
        describe=found,
    )
    return str(found(policies)[0]["message"])


def test_a_pod_is_evicted_after_the_grace_and_its_event_says_why(
    cluster: LocalCluster, namespace: str
) -> None:
    start_exceeding(cluster, namespace)
    until_evicted(cluster, namespace)
    note = until_told(cluster, namespace, "EvictedForMemory")
    assert re.fullmatch(
        rf"container main has 6Gi of card \S+ of node {NODE} and asked for 4Gi, for \d+ s: its pod is"
        r" evicted, by isolation\.onExcess Evict of policy default; ask for more, or limit what the"
        r" program uses",
        note,
    )
    seconds = int(re.findall(r"for (\d+) s", note)[0])
    assert seconds >= GRACE
    print(note)


def test_a_disruption_budget_keeps_the_pod_and_that_is_said(
    cluster: LocalCluster, namespace: str, budget: Callable[[], None]
) -> None:
    start_exceeding(cluster, namespace)
    note = until_told(cluster, namespace, "EvictionForMemoryRefused")
    assert "disruption budget" in note
    message = until_degraded(cluster, "EvictionsRefused")
    assert f"evict pod {namespace}/greedy" in message
    assert not is_ending(get(cluster, paths.pod_path(namespace, "greedy")))
    print(note, message, sep="\n")
    budget()
    until_evicted(cluster, namespace)
    until_degraded(cluster, "AsExpected")


def test_a_policy_that_only_reports_evicts_nobody_until_it_says_otherwise(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(asked("Report"))
    product.await_ready("default")
    start_exceeding(cluster, namespace)
    seen = product.share_node(NODE, exceeded_since, what="the excess is reported", seconds=SECONDS)
    until_alive_after(cluster, exceeded_since(seen)[0] + timedelta(seconds=GRACE))
    assert not is_ending(get(cluster, paths.pod_path(namespace, "greedy")))
    product.apply(asked("Evict"))
    until_evicted(cluster, namespace)


def exceeded_since(share_node: Json) -> list[datetime]:
    shares = (share for card in share_node["status"].get("cards", ()) for share in card.get("pods", ()))
    moments = (read_rfc3339(share.get("exceededSince", "")) for share in shares)
    return [moment for moment in moments if moment]


def until_alive_after(cluster: LocalCluster, moment: datetime) -> None:
    """Wait until the plugin has renewed its Lease after ``moment``: from then on a policy may evict."""

    def renewed(leases: Any) -> bool:
        (lease,) = (lease for lease in leases if named(lease, lease_name(NODE)))
        return (read_rfc3339(lease["spec"]["renewTime"]) or moment) > moment

    watch_until(cluster, paths.leases(SYSTEM), renewed, what="the plugin renews its Lease", seconds=SECONDS)
