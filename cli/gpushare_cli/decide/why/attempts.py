"""Since when a pod waits, how often it was tried, and what schedulers and kubelets say of it."""

from collections.abc import Iterator

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.why.explanation import Attempts, SchedulerWords
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import seconds_since
from gpushare_core.api.timestamps import read_rfc3339, rfc3339
from gpushare_core.text.json_object import Json

FAILED = "FailedScheduling"
KUBELET = "kubelet"
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
        last_tried=_whole_seconds(max((event.last_seen for event in failed), default="")),
        is_unschedulable=unschedulable_message(situation.pod) is not None,
    )


def _whole_seconds(moment: str) -> str:
    read = read_rfc3339(moment)
    return rfc3339(read) if read else ""


def unschedulable_message(pod: Json) -> str | None:
    """Returns what a scheduler has written into the pod; None where it has not found it unschedulable."""
    for condition in status_of(pod).conditions or ():
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return condition.message or ""
    return None


def words_of(situation: PodSituation) -> list[SchedulerWords]:
    """Returns the latest Event of each reason, the schedulers' first; without what a kubelet says of every
    pod, and what a scheduler said of one that has a node now. Events are kept for an hour, and what a
    scheduler wrote into the pod is kept longer."""
    seen: dict[tuple[str, str], ObservedEvent] = {}
    for event in situation.events or ():
        is_past = bool(situation.node) and event.reason == FAILED
        if not is_past and (event.by != KUBELET or event.type == "Warning"):
            seen.setdefault((event.by, event.reason), event)
    latest = sorted(seen.values(), key=lambda event: event.reason != FAILED)
    words = [
        SchedulerWords(
            by=event.by, reason=event.reason, message=event.note, count=event.count, last_seen=event.last_seen
        )
        for event in latest
    ]
    return [*_of_the_pod(situation, words), *words][:MAX_WORDS]


def _of_the_pod(situation: PodSituation, words: list[SchedulerWords]) -> Iterator[SchedulerWords]:
    message = unschedulable_message(situation.pod)
    if message and not any(said.reason == FAILED for said in words) and not situation.node:
        yield SchedulerWords(by="scheduler", reason="Unschedulable", message=message)
