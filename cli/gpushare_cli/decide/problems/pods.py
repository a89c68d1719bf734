"""Pods that wait for units, and pods that another scheduler places."""

from collections.abc import Iterator, Sequence

from gpushare_cli.decide.objects.policy import placing_engine
from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.wording import age_since, counted, listed
from gpushare_core.api.enums import Engine
from gpushare_core.api.names import OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.dialects.table import DIALECTS, SHARED_RESOURCES
from gpushare_core.text.whole_number import whole_number


def pod_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    yield from _waiting(facts)
    yield from _placed_by_others(facts)


def _waiting(facts: StatusFacts) -> Iterator[StatusProblem]:
    """Pods that ask for a name that no node serves wait for ever: people made a mistake."""
    pods = [pod for pod in facts.waiting if pod.wanted]
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.name))
    spoken = {policy.spec.dialect for policy in facts.policies or ()} & DIALECTS.keys()
    known = {name for dialect in spoken for name in DIALECTS[dialect].resources} | SHARED_RESOURCES
    mistaken = [pod for pod in pods if spoken and not pod.wanted <= known]
    others = [pod for pod in pods if not spoken or pod.wanted <= known]
    if mistaken:
        names = listed(sorted({name for pod in mistaken for name in pod.wanted - known}))
        asks = "it asks" if len(mistaken) == 1 else "they ask"
        yield _of_pods(
            facts,
            mistaken,
            severity=Severity.WARNING,
            reason="ResourceNotServed",
            sentence=f"{asks} for what no node serves ({names})",
        )
    if others:
        asks = "it asks" if len(others) == 1 else "they ask"
        yield _of_pods(
            facts,
            others,
            severity=Severity.NOTE,
            reason="PodsWaiting",
            sentence=f"no node yet for the units that {asks} for",
        )


def _of_pods(
    facts: StatusFacts, pods: Sequence[UnplacedPod], *, severity: Severity, reason: str, sentence: str
) -> StatusProblem:
    """``pods``: the oldest first."""
    oldest = pods[0]
    return StatusProblem(
        severity=severity,
        reason=reason,
        kind="pod",
        names=tuple(pod.name for pod in pods),
        sentence=sentence,
        detail=f"{oldest.name} waits for {age_since(oldest.metadata.creation_timestamp, facts.now)}",
        command=f"kubectl gpushare why {oldest.metadata.name} -n {oldest.metadata.namespace}",
    )


def _placed_by_others(facts: StatusFacts) -> Iterator[StatusProblem]:
    """By the extender, which sees such pods. Without an extender nothing is known of them: its Lease keeps
    what the last one wrote."""
    if placing_engine(facts.policies or ()) is Engine.PLUGIN:
        return
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
