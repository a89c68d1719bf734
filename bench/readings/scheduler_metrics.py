"""What kube-scheduler tells Prometheus of its attempts, its queue and its memory. Texts in, numbers out."""

from collections import Counter

from bench.readings.prometheus_text import by_label, total

ATTEMPTS = "scheduler_schedule_attempts_total"
QUEUES = "scheduler_pending_pods"
QUEUED = "scheduler_queue_incoming_pods_total"
HEAP = "go_memstats_heap_alloc_bytes"
SCHEDULED, ERROR = "scheduled", "error"


def attempts(metrics: str) -> float:
    """Returns how many attempts to schedule a pod have ended."""
    return total(metrics, ATTEMPTS)


def refused_attempts(metrics: str) -> float:
    """Returns how many of them found no node: a pod that is bound at its first attempt has none."""
    found = by_label(metrics, ATTEMPTS, "result")
    return sum(count for result, count in found.items() if result not in (SCHEDULED, ERROR))


def failed_attempts(metrics: str) -> float:
    """Returns how many of them ended in an error, such as a binding that failed."""
    return by_label(metrics, ATTEMPTS, "result").get(ERROR, 0)


def waiting_to_be_tried(metrics: str) -> float:
    """Returns how many pods are about to be tried."""
    queues = by_label(metrics, QUEUES, "queue")
    return queues.get("active", 0) + queues.get("backoff", 0)


def queued_between(before: str, after: str) -> Counter[str]:
    """Returns how many pods each event has queued between two readings."""
    found = Counter(_queued(after))
    found.subtract(_queued(before))
    return +found


def _queued(metrics: str) -> dict[str, int]:
    return {event: int(count) for event, count in by_label(metrics, QUEUED, "event").items()}


def heap(metrics: str) -> float:
    """Returns the MiB of all that the program has allocated and not yet collected."""
    return total(metrics, HEAP) / 2**20
