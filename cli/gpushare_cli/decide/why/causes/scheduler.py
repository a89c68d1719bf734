"""Schedulers that place no pod on a card: nobody by that name, one that does not ask us, none of ours."""

from collections.abc import Iterator

from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.causes.names import asks_for_cards
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import seconds_since
from gpushare_cli.wording import counted, listed
from gpushare_core.api.enums import Backend, Engine
from gpushare_core.api.names import DEDICATED_SCHEDULER

DEFAULT_SCHEDULER, VOLCANO_SCHEDULER = "default-scheduler", "volcano"
SILENCE_SECONDS = 15
"""After which a scheduler that runs has tried a new pod, or says so in its condition."""


def _backends(situation: PodSituation) -> list[str]:
    policies = situation.cluster.policies or ()
    named = {policy.status.backend or policy.spec.scheduler.backend for policy in policies}
    return sorted(named - {""})


def _serving(situation: PodSituation) -> set[str] | None:
    """Returns the names of the schedulers that know cards; None where they are not known."""
    # Our own runs with one backend only, and stays among those that have asked when it is removed.
    asking = {*(situation.cluster.asking_schedulers or ())} - {DEDICATED_SCHEDULER}
    match _backends(situation):
        case [Backend.DEDICATED]:
            return {DEDICATED_SCHEDULER}
        case [Backend.VOLCANO]:
            return {VOLCANO_SCHEDULER}
        case [Backend.KUBE_SCHEDULER]:
            return {DEFAULT_SCHEDULER, *asking}
        case [Backend.EXTERNAL]:
            return asking or None
    return None


def schedulers(situation: PodSituation) -> Iterator[Finding]:
    name = written_pod(situation.pod).spec.scheduler_name or DEFAULT_SCHEDULER
    serving = _serving(situation) if asks_for_cards(situation) else None
    is_silent = _is_silent(situation)
    if serving is None or name in serving:
        if is_silent:
            yield _nobody_tries(name)
        return
    known_others = (DEFAULT_SCHEDULER, VOLCANO_SCHEDULER)
    if is_silent or name == DEDICATED_SCHEDULER or not (situation.exists or name in known_others):
        yield _nobody(situation, name, serving)
    else:
        yield _does_not_ask(situation, name, serving)


def _is_silent(situation: PodSituation) -> bool:
    """Returns whether no scheduler has said anything of a pod that is there for a while."""
    pod = written_pod(situation.pod)
    seconds = seconds_since(pod.metadata.creation_timestamp or "", situation.now)
    tried = any(condition.type == "PodScheduled" for condition in pod.status.conditions or ())
    return situation.exists and not tried and (seconds or 0) > SILENCE_SECONDS and not situation.events


def _nobody_tries(name: str) -> Finding:
    ours = "app.kubernetes.io/component=scheduler -o wide"
    label = ours if name == DEDICATED_SCHEDULER else "component=kube-scheduler"
    return decisive(
        "NobodyTries",
        f"No scheduler has tried the pod yet: {name} does not seem to run.",
        f"kubectl get pods -A -l {label}",
    )


def _nobody(situation: PodSituation, name: str, serving: set[str]) -> Finding:
    known = listed(sorted(serving))
    anew = (
        " Delete the pod and create it again: in one that exists it cannot be changed."
        if situation.exists
        else ""
    )
    return decisive(
        "UnknownScheduler",
        (
            f"The pod has schedulerName: {name}, but no scheduler of that name places pods by cards."
            " If none of that name runs, the pod waits for ever; if one runs, it knows nothing of cards."
        ),
        f"Write schedulerName: {known}, or leave it out.{anew}",
    )


def _does_not_ask(situation: PodSituation, name: str, serving: set[str]) -> Finding:
    backend, known = listed(_backends(situation)), listed(sorted(serving))
    return noted(
        "SchedulerDoesNotAsk",
        (
            f"{name} places the pod, and knows nothing of cards: with backend {backend} {known}"
            " places pods that ask for cards."
        ),
        f"Write schedulerName: {known}, and create the pod again.",
    )


def extender_away(situation: PodSituation) -> Iterator[Finding]:
    """With engine Extender it runs beside kube-scheduler: with backend Dedicated in the same pod, with all
    others but Volcano by a DaemonSet."""
    programs, extender = situation.cluster.programs, situation.cluster.program("extender")
    backends = _backends(situation)
    if programs is None or not situation.share_nodes or backends in ([Backend.VOLCANO], [Backend.DEDICATED]):
        return
    if situation.cluster.engine is Engine.PLUGIN:
        return
    if extender is None or not extender.ready:
        wanted = extender.status.desired_number_scheduled if extender else 0
        how = f"0 of its {counted(wanted, 'pod')} are ready" if wanted else "no pod of it is there"
        yield decisive(
            "ExtenderAway",
            f"The extender, which chooses cards, does not run: {how}. Pods that ask for cards wait.",
            "kubectl get pods -A -l app.kubernetes.io/component=extender -o wide",
        )


def operator_away(situation: PodSituation) -> Iterator[Finding]:
    programs, operator = situation.cluster.programs, situation.cluster.program("operator")
    if programs is None or not situation.cluster.policies or (operator and operator.ready):
        return
    yield noted(
        "OperatorAway",
        "The operator does not run: what is shared stays, and no change of a policy takes effect.",
        "kubectl get pods -A -l app.kubernetes.io/component=operator",
    )
