"""Isolation that a node cannot have, and pods that were evicted because they had more than they asked for."""

from collections.abc import Iterator

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.why.finding import Finding, noted
from gpushare_cli.decide.why.nearest import fitting_nodes
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import age_since, listed
from gpushare_core.api.names import ISOLATION_READY

GENERATED = 5
"""Characters that the API server appends to ``generateName``."""


def isolation_unavailable(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that the pod may go to, and whose cards are closed for it: those of a policy together."""
    by_policy: dict[tuple[str, str], list[str]] = {}
    for name, node in situation.unable_nodes.items():
        by_policy.setdefault((node.spec.isolation.memory, node.spec.policy), []).append(name)
    for (asked, policy), names in by_policy.items():
        ready = situation.unable_nodes[names[0]].condition(ISOLATION_READY)
        takes = "takes" if len(names) == 1 else "take"
        yield Finding(
            code="IsolationUnavailable",
            sentence=f"{listed(names)} cannot have the isolation {asked} that policy {policy} asks for, and"
            f" {takes} no new pods.",
            nodes=len(names),
            advice=[
                *([f"{names[0]}: {ready.message}"] if ready and ready.message else []),
                f"kubectl describe gpusharenode {names[0]}",
            ],
            is_decisive=not fitting_nodes(situation),
        )


def evicted_before(situation: PodSituation) -> Iterator[Finding]:
    """Another pod of the same Deployment, Job or StatefulSet that was evicted lately."""
    for sentence in eviction_sentences(situation):
        yield noted(
            "EvictedBefore", sentence, "Let its containers ask for more, or their programs take less."
        )


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
