"""Pods that wait for units, and pods that another scheduler places."""

from collections.abc import Iterator

from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.wording import age_since, counted
from gpushare_core.api.names import OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.text.whole_number import whole_number


def pod_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    yield from _waiting(facts)
    yield from _placed_by_others(facts)


def _waiting(facts: StatusFacts) -> Iterator[StatusProblem]:
    pods = [pod for pod in facts.waiting if pod.waits_for_units]
    if not pods:
        return
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.name))
    oldest = pods[0]
    asks = "it asks" if len(pods) == 1 else "they ask"
    yield StatusProblem(
        severity=Severity.NOTE,
        reason="PodsWaiting",
        kind="pod",
        names=tuple(pod.name for pod in pods),
        sentence=f"no node yet for the units that {asks} for",
        detail=f"{oldest.name} waits for {age_since(oldest.metadata.creation_timestamp, facts.now)}",
        command=f"kubectl gpushare why {oldest.metadata.name} -n {oldest.metadata.namespace}",
    )


def _placed_by_others(facts: StatusFacts) -> Iterator[StatusProblem]:
    """By the extender, which sees such pods. Without an extender nothing is known of them."""
    annotations = (facts.calls.metadata.annotations if facts.calls else None) or {}
    number, *names = annotations.get(OTHER_SCHEDULERS_ANNOTATION, "").split() or [""]
    count = whole_number(number)
    if not count:
        return
    yield StatusProblem(
        severity=Severity.WARNING,
        reason="OtherSchedulers",
        kind="pod",
        names=tuple(names),
        sentence="another scheduler, which does not look at single cards, places pods that ask for units",
        detail=f"{counted(count, 'pod')} in all" if count > len(names) else "",
        command="kubectl get pods -A -o custom-columns="
        "POD:.metadata.name,NAMESPACE:.metadata.namespace,SCHEDULER:.spec.schedulerName",
    )
