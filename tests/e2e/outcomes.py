"""What becomes of many pods: each runs, or waits with a reason that is true."""

import json
from collections import Counter
from collections.abc import Sequence

from tests.e2e.observe import PODS, Json, condition, watch_until
from tests.e2e.workloads import MEMORY

from gpushare_localcluster.cluster import LocalCluster

REASONS = ("insufficient GPU memory in one card", "Insufficient gpushare.io/memory")
"""Of the extender, where no card has room, and of the scheduler, where not even the node's total suffices."""


def await_outcomes(
    cluster: LocalCluster, namespace: str, *, pods: int, capacity: Sequence[int], seconds: float = 240.0
) -> list[Json]:
    """Wait until each of ``pods`` active pods runs on cards of ``capacity`` units or waits for a true reason.

    Returns the active ones."""
    seen = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda items: all_decided(items, pods=pods, capacity=capacity),
        what=f"{pods} pods run or wait for a true reason",
        seconds=seconds,
        describe=summary,
    )
    return [pod for pod in seen if is_active(pod)]


def all_decided(items: Sequence[Json], *, pods: int, capacity: Sequence[int]) -> bool:
    active = [item for item in items if is_active(item)]
    if len(active) != pods:
        return False
    running = [pod for pod in active if is_running(pod)]
    largest = largest_free(running, capacity)
    waiting = [pod for pod in active if not is_running(pod)]
    return all(is_refused(pod) and asked(pod) > largest for pod in waiting)


def is_active(pod: Json) -> bool:
    return (
        pod["status"].get("phase") not in ("Failed", "Succeeded")
        and "deletionTimestamp" not in pod["metadata"]
    )


def is_running(pod: Json) -> bool:
    return condition(pod, "Ready").get("status") == "True"


def is_refused(pod: Json) -> bool:
    message = condition(pod, "PodScheduled").get("message", "")
    return any(reason in message for reason in REASONS)


def asked(pod: Json) -> int:
    limits = (container["resources"].get("limits", {}) for container in pod["spec"]["containers"])
    return sum(int(limit.get(MEMORY, 0)) for limit in limits)


def largest_free(running: Sequence[Json], capacity: Sequence[int]) -> int:
    """Free units of the emptiest of equal cards, by the annotations; untouched cards have all free."""
    used: Counter[str] = Counter()
    for pod in running:
        allocation = json.loads(pod["metadata"].get("annotations", {}).get("gpushare.io/allocation", "{}"))
        used.update(allocation.get("cards", {}))
    size = max(capacity)
    return size if len(used) < len(capacity) else size - min(used.values())


def summary(items: Sequence[Json]) -> dict[str, object]:
    """For a message: how many pods are in which state, and what some of them say."""
    active = [item for item in items if is_active(item)]
    waiting = [pod for pod in active if not is_running(pod)]
    return {
        "phases": dict(Counter(item["status"].get("phase", "") for item in items)),
        "running": len(active) - len(waiting),
        "waiting": [
            (pod["metadata"]["name"], asked(pod), condition(pod, "PodScheduled").get("message", "bound"))
            for pod in waiting[:5]
        ],
        "failed": [
            item["status"].get("message", "") for item in items if item["status"].get("phase") == "Failed"
        ][:3],
    }
