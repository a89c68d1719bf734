"""``kubectl gpushare simulate``, ``cordon`` and ``drain-card`` as an administrator has them."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import policy
from tests.e2e.workloads import create, pod, replica_set

from gpushare_core.api.names import CORDON_ANNOTATION, CORDON_REASON_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("shared_policy")]

ALLOCATION = "gpushare.io/allocation"
NODE = "gpu-1"


def document(cluster: LocalCluster, *arguments: str, stdin: Json | None = None) -> Json:
    done = gpushare(cluster, *arguments, "-o", "json", stdin=json.dumps(stdin) if stdin else None)
    assert done.stdout, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def places(report: Json) -> Counter[tuple[str, str]]:
    """Returns node and card of the pods that fit -> how many."""
    return Counter(
        (placement["node"], card["uuid"]) for placement in report["placements"] for card in placement["cards"]
    )


def allocated(pods: Sequence[Json], owner: str) -> Counter[tuple[str, str]]:
    """As ``places``, by what the pods of ``owner`` (the beginning of their names) have."""
    texts = [
        item["metadata"].get("annotations", {}).get(ALLOCATION)
        for item in pods
        if item["metadata"]["name"].startswith(owner)
    ]
    allocations = [json.loads(text) for text in texts if text]
    return Counter((allocation["node"], card) for allocation in allocations for card in allocation["cards"])


def await_running(cluster: LocalCluster, namespace: str, owner: str, count: int) -> Sequence[Json]:
    def running(pods: Sequence[Json]) -> list[Json]:
        own = [item for item in pods if item["metadata"]["name"].startswith(owner)]
        return [item for item in own if is_running(item) and not item["metadata"].get("deletionTimestamp")]

    what = f"{count} pods of {owner} run"
    seen = watch_until(
        cluster, PODS.format(namespace=namespace), lambda pods: len(running(pods)) == count, what=what
    )
    return running(seen)


def test_pods_land_where_it_said(cluster: LocalCluster, namespace: str) -> None:
    body = replica_set("web", units=6, replicas=5)
    said = document(cluster, "simulate", "-n", namespace, "-f", "-", stdin=body)
    assert [placement["name"] for placement in said["placements"]] == [f"web-{n}" for n in range(1, 6)]
    create(cluster, namespace, [body])
    pods = await_running(cluster, namespace, "web", 5)
    assert allocated(pods, "web") == places(said)
    assert_what_stays_pending(cluster)


def assert_what_stays_pending(cluster: LocalCluster) -> None:
    large = json.dumps(pod("large", {"main": 17}))
    done = gpushare(cluster, "simulate", "--unit", "2Gi", "-f", "-", stdin=large)
    assert done.returncode == 1, done.stderr
    text = " ".join(done.stdout.split())
    assert "0 of 1 pod fits; 1 would stay pending." in text
    assert "insufficient GPU memory in one card: asked 17, largest free 8, biggest card 8" in text
    said = document(cluster, "simulate", "--unit", "256Mi", "-f", "-", stdin=pod("a", {"main": 64}))
    (before,), (after,) = said["unitsBefore"], said["unitsAfter"]
    assert (before["unit"], after["unit"]) == ("1Gi", "256Mi")
    assert after["units"] == 4 * before["units"]
    assert said["placements"][0]["node"]


def test_a_policy_before_it_is_applied_and_a_node_less(
    cluster: LocalCluster, namespace: str, tmp_path: Path
) -> None:
    create(cluster, namespace, [pod("holder", {"main": 4}, on=NODE), replica_set("web", units=3, replicas=2)])
    await_running(cluster, namespace, "web", 2)
    await_running(cluster, namespace, "holder", 1)
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy("default", nodes=[NODE, "gpu-2"], unit="512Mi")))
    said = document(cluster, "simulate", "--policy", str(file), "--without", NODE)
    change = said["policy"]
    assert (change["checkedBy"], change["isNew"], change["refusal"]) == ("APIServer", False, "")
    effects = {node["node"]: node["effect"] for node in change["nodes"]}
    assert (effects[NODE], effects["gpu-3"]) == ("Waits", "Loses")
    assert effects["gpu-2"] in ("Divides", "Waits")  # web may be there
    assert {"namespace": namespace, "name": "holder", "units": 4} in change["nodes"][0]["pods"]
    assert_it_is_refused(cluster, file)
    moved = {placement["name"]: placement for placement in said["placements"]}
    assert moved["holder"]["node"] == ""  # its selector names the node that is taken out
    less = document(cluster, "simulate", "--without", NODE)
    others = [placement for placement in less["placements"] if placement["name"].startswith("web")]
    assert all(placement["node"] not in ("", NODE) for placement in others)


def assert_it_is_refused(cluster: LocalCluster, file: Path) -> None:
    file.write_text(json.dumps(policy("default", nodes=[NODE], unit="1X")))
    done = gpushare(cluster, "simulate", "--policy", str(file))
    assert done.returncode == 1
    assert "memoryUnit must be a whole number of M, G, Mi or Gi" in done.stdout
    present = json.loads(cluster.kubectl("get", "gpusharepolicy", "default", "-o", "json"))
    assert present["spec"]["memoryUnit"] == "1Gi"


def annotations(cluster: LocalCluster) -> Json:
    share_node = json.loads(cluster.kubectl("get", "gpusharenode", NODE, "-o", "json"))
    found: Json = share_node["metadata"]["annotations"]
    return found


def test_a_card_is_cordoned_and_serves_again(cluster: LocalCluster, namespace: str) -> None:
    first = gpushare(cluster, "cordon", NODE, "0", "--reason", "fan is loud")
    assert first.returncode == 0, first.stderr
    assert f"Card 0 of {NODE}" in first.stdout
    assert annotations(cluster)[CORDON_REASON_ANNOTATION].endswith(": fan is loud")
    said = document(cluster, "simulate", "-n", namespace, "-f", "-", stdin=pod("a", {"main": 4}, on=NODE))
    assert said["placements"][0]["cards"][0]["index"] != 0
    again = gpushare(cluster, "uncordon", NODE, "0")
    assert again.returncode == 0, again.stderr
    assert not {CORDON_ANNOTATION, CORDON_REASON_ANNOTATION} & annotations(cluster).keys()
    unknown = gpushare(cluster, "cordon", NODE, "99")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert f"node {NODE} has no card 99" in unknown.stderr


def assert_who_has_no_controller_is_not_evicted_unasked(cluster: LocalCluster, namespace: str) -> None:
    (alone,) = await_running(cluster, namespace, "alone", 1)
    (node, card), _ = next(iter(allocated([alone], "alone").items()))
    done = gpushare(cluster, "drain-card", node, card, "--yes")
    assert done.returncode == 1, done.stderr
    assert f"{namespace}/alone would be gone for good" in " ".join(done.stdout.split())
    assert CORDON_ANNOTATION not in annotations(cluster)
    cluster.kubectl("delete", "pod", "alone", "-n", namespace, "--now")


def await_kept(cluster: LocalCluster, node: str, card: str) -> None:
    """Drains again until the budget keeps a pod: a busy plugin may see the cordon only after the timeout, and
    nobody is evicted before."""
    told: list[str] = []

    def is_kept() -> bool:
        kept = gpushare(cluster, "drain-card", node, card, "--yes", "--timeout", "4s")
        assert kept.returncode == 1, kept.stderr
        told[:] = [kept.stdout]
        return "PodDisruptionBudget all-stay does not let it go" in kept.stdout

    wait_until("the budget keeps a pod", is_kept, explain=lambda: told[0])


def test_a_card_is_drained_as_its_budget_allows(cluster: LocalCluster, namespace: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all-stay"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"burst": "web"}}},
    }
    create(
        cluster,
        namespace,
        [budget, replica_set("web", units=6, replicas=2), pod("alone", {"main": 4}, on=NODE)],
    )
    assert_who_has_no_controller_is_not_evicted_unasked(cluster, namespace)
    pods = await_running(cluster, namespace, "web", 2)
    (node, card), _ = next(iter(allocated(pods, "web").items()))
    try:
        await_kept(cluster, node, card)
        cluster.kubectl("delete", "pdb", "all-stay", "-n", namespace)
        plan = document(cluster, "drain-card", node, card, "--dry-run")
        drained = document(cluster, "drain-card", node, card, "--yes")
        assert (drained["outcome"], drained["cards"][0]["allocatedUnits"]) == ("Drained", 0)
        now = allocated(await_running(cluster, namespace, "web", 2), "web")
        assert (node, card) not in now
        foreseen = {
            (pod["replacement"]["node"], pod["replacement"]["cards"][0]["uuid"]) for pod in plan["pods"]
        }
        assert foreseen <= now.keys()
    finally:
        gpushare(cluster, "uncordon", node, card)
