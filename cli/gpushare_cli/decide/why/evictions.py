"""Pods in whose place a pod is, that were evicted because they had more memory than they asked for."""

from collections.abc import Iterator

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import age_since

GENERATED = 5
"""Characters that the API server appends to ``generateName``."""


def eviction_sentences(situation: PodSituation) -> Iterator[str]:
    """Yields one at most: of the latest."""
    before = [event for event in situation.evictions if _is_of_the_same_maker(event, situation)]
    latest = max(before, key=lambda event: event.last_seen, default=None)
    if latest:
        age = age_since(latest.last_seen, situation.now)
        yield f"Pod {latest.regarding.path}, which came before it, was evicted {age} ago: {latest.note}"


def _is_of_the_same_maker(event: ObservedEvent, situation: PodSituation) -> bool:
    """A StatefulSet gives the new pod the same name, others append some letters to a common beginning."""
    name, beginning = event.regarding.name, situation.generate_name
    is_generated = bool(beginning) and name.startswith(beginning) and len(name) == len(beginning) + GENERATED
    return name == situation.name or (is_generated and "-" not in name[len(beginning) :])
