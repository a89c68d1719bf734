"""What a namespace and a container may have of cards: the objects of docs/quota.md, on a real API server."""

import json
import re
from typing import Any

import pytest
import yaml
from tests.e2e.books import read_books
from tests.e2e.command_line import gpushare
from tests.e2e.observe import PATIENCE, PODS, Json, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import ROOT
from tests.e2e.workloads import MEMORY, SLICE, create, pod, replica_set

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy", "books_agree")]

PAGE = ROOT / "docs/quota.md"
REPLICA_SETS = "/apis/apps/v1/namespaces/{namespace}/replicasets"
UNITS = 8
"""That the quota and the LimitRange of the page allow."""


def written(kind: str) -> Json:
    """Returns the first object of ``kind`` on the page."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    bodies: list[Json] = [yaml.safe_load(block) for block in blocks]
    return next(body for body in bodies if body["kind"] == kind)


def quota(hard: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "cards"},
        "spec": {"hard": hard},
    }


def admitted(cluster: LocalCluster, namespace: str, body: Json) -> Json:
    """Returns what the API server would make of a pod. Raises ``LocalClusterError`` where it refuses."""
    arguments = ("create", "--dry-run=server", "-o", "json", "-n", namespace, "-f", "-")
    answer: Json = json.loads(cluster.kubectl(*arguments, stdin=json.dumps(body)))
    return answer


def refusal(cluster: LocalCluster, namespace: str, body: Json) -> str:
    """Returns why the API server refuses a pod; empty where it does not."""
    try:
        admitted(cluster, namespace, body)
    except LocalClusterError as error:
        return str(error)
    return ""


def await_refusal(cluster: LocalCluster, namespace: str, body: Json, words: str) -> None:
    """The API server's admission learns of a new quota a moment after it was made."""
    wait_until(
        f"a pod is refused: {words}",
        lambda: words in refusal(cluster, namespace, body),
        timeout=PATIENCE,
        interval=0.2,
        explain=lambda: refusal(cluster, namespace, body),
    )


def await_running(cluster: LocalCluster, namespace: str, number: int) -> list[Json]:
    return watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: sum(map(is_running, pods)) == number == len(pods),
        what=f"{number} pods are there, and run",
        describe=lambda pods: [pod["status"] for pod in pods],
    )


def await_replica_failure(cluster: LocalCluster, namespace: str) -> str:
    """Returns what the ReplicaSet says of the pod that it may not make."""

    def failure(replica_sets: Any) -> str:
        return "".join(condition(item, "ReplicaFailure").get("message", "") for item in replica_sets)

    seen = watch_until(
        cluster,
        REPLICA_SETS.format(namespace=namespace),
        lambda replica_sets: bool(failure(replica_sets)),
        what="the ReplicaSet says that a pod is refused",
    )
    return failure(seen)


def await_shown(cluster: LocalCluster, namespace: str, *, held: int, used: int, hard: int) -> None:
    """Wait until the command line shows what the namespace holds beside its quota: plugins tell of it."""

    def shown() -> tuple[int, int, int]:
        answer = gpushare(cluster, "namespaces", "-n", namespace, "-o", "json")
        (holding,) = json.loads(answer.stdout)["namespaces"]
        (limit,) = (limit for limit in holding["quotas"] if limit["resource"] == MEMORY)
        return holding["units"].get(MEMORY, 0), limit["usedUnits"], limit["hardUnits"]

    wait_until(
        "the command line shows the quota beside what is held",
        lambda: shown() == (held, used, hard),
        timeout=PATIENCE,
        interval=0.5,
        explain=lambda: str(shown()),
    )


def limits(body: Json) -> Json:
    (container,) = body["spec"]["containers"]
    found: Json = container["resources"].get("limits", {})
    return found


def test_a_namespace_gets_no_more_units_than_its_quota_and_the_next_ones_once_that_is_larger(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [written("ResourceQuota")])
    await_refusal(cluster, namespace, pod("large", {"main": UNITS + 1}), "exceeded quota: cards")
    create(cluster, namespace, [replica_set("web", units=4, replicas=3)])
    message = await_replica_failure(cluster, namespace)
    await_running(cluster, namespace, 2)
    assert f"requested: requests.{MEMORY}=4, used: requests.{MEMORY}=8" in message
    assert sum(share.units for share in read_books(cluster, namespace).environment.values()) == UNITS

    await_shown(cluster, namespace, held=UNITS, used=UNITS, hard=UNITS)
    patch = json.dumps({"spec": {"hard": {f"requests.{MEMORY}": "12"}}})
    cluster.kubectl("patch", "quota", "cards", "-n", namespace, "--type=merge", "-p", patch)
    await_running(cluster, namespace, 3)


def test_containers_of_a_pod_count_together(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [written("ResourceQuota")])
    together = pod("two", {"a": 4, "b": 5})
    await_refusal(cluster, namespace, together, f"requested: requests.{MEMORY}=9, used: requests.{MEMORY}=0")
    assert refusal(cluster, namespace, pod("two", {"a": 4, "b": 4})) == ""


def test_the_other_resources_are_limited_by_keys_of_their_own(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [written("ResourceQuota")])
    await_refusal(
        cluster, namespace, pod("slices", {"main": 1}, resource=SLICE), f"limited: requests.{SLICE}=0"
    )


def test_a_pod_that_waits_counts_as_well(cluster: LocalCluster, namespace: str) -> None:
    """20 units are more than a card has: the pod waits for ever."""
    create(cluster, namespace, [quota({f"requests.{MEMORY}": "24"})])
    await_refusal(cluster, namespace, pod("large", {"main": 25}), "exceeded quota: cards")
    create(cluster, namespace, [pod("waits", {"main": 20})])
    await_refusal(cluster, namespace, pod("next", {"main": 5}), f"used: requests.{MEMORY}=20")
    assert refusal(cluster, namespace, pod("next", {"main": 4})) == ""


@pytest.mark.parametrize("key", [MEMORY, f"limits.{MEMORY}"])
def test_a_quota_without_requests_in_front_counts_nothing(
    cluster: LocalCluster, namespace: str, key: str
) -> None:
    """The slice shows that the API server has learned of the quota."""
    create(cluster, namespace, [quota({key: "1", f"requests.{SLICE}": "0"})])
    await_refusal(cluster, namespace, pod("slices", {"main": 1}, resource=SLICE), "exceeded quota: cards")
    assert refusal(cluster, namespace, pod("large", {"main": 16})) == ""


def test_a_limit_range_limits_each_container_and_gives_nothing_to_those_that_ask_for_nothing(
    cluster: LocalCluster, namespace: str
) -> None:
    create(cluster, namespace, [written("LimitRange")])
    await_refusal(
        cluster,
        namespace,
        pod("large", {"main": UNITS + 1}),
        f"maximum {MEMORY} usage per Container is {UNITS}, but limit is {UNITS + 1}",
    )
    create(cluster, namespace, [pod("plain", {"main": 0}), pod("most", {"a": UNITS, "b": UNITS})])
    pods = {body["metadata"]["name"]: body for body in await_running(cluster, namespace, 2)}
    assert limits(pods["plain"]) == {MEMORY: "0"}
    held = {key.pod: share.units for key, share in read_books(cluster, namespace).environment.items()}
    assert held == {"most": UNITS}


def test_a_limit_range_without_defaults_gives_its_maximum_to_who_asks_for_nothing(
    cluster: LocalCluster, namespace: str
) -> None:
    """What the page warns of: it is Kubernetes' own default."""
    body = written("LimitRange")
    (item,) = body["spec"]["limits"]
    body["spec"]["limits"] = [{"type": item["type"], "max": item["max"]}]
    create(cluster, namespace, [body])
    await_refusal(cluster, namespace, pod("large", {"main": UNITS + 1}), "usage per Container")
    assert limits(admitted(cluster, namespace, pod("plain", {"main": 0}))) == {MEMORY: str(UNITS)}
