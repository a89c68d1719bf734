"""Since when a pod waits, how often it was tried, and what schedulers and kubelets say of it."""

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.why.explanation import Attempts, SchedulerWords
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import seconds_since

FAILED = "FailedScheduling"
MAX_WORDS = 4


def attempts_of(situation: PodSituation) -> Attempts | None:
    """Returns None for a manifest: nobody waits yet."""
    if not situation.exists:
        return None
    since = str(situation.pod.get("metadata", {}).get("creationTimestamp") or "")
    failed = [event for event in situation.events or () if event.reason == FAILED]
    return Attempts(
        since=since,
        seconds=seconds_since(since, situation.now) or 0,
        tried=None if situation.events is None else sum(event.count for event in failed),
        last_tried=max((event.last_seen for event in failed), default=""),
    )


def words_of(situation: PodSituation) -> list[SchedulerWords]:
    """Returns what the latest Events say, each text once; kube-scheduler's first."""
    seen: dict[tuple[str, str], ObservedEvent] = {}
    for event in situation.events or ():
        seen.setdefault((event.reason, event.note), event)
    latest = sorted(seen.values(), key=lambda event: event.reason != FAILED)
    return [
        SchedulerWords(
            by=event.by, reason=event.reason, message=event.note, count=event.count, last_seen=event.last_seen
        )
        for event in latest[:MAX_WORDS]
    ]
