"""The condition about a second kube-scheduler, and how pods come to it."""

from collections.abc import Iterator, Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Engine
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.api.served import Problem
from gpushare_operator.backends.dedicated.connection import engine_choice, is_as_desired
from gpushare_operator.backends.dedicated.deployment import scheduler_image
from gpushare_operator.backends.engine_image import WITHOUT_OUR_IMAGE, cannot_be_run
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import ReadResult
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import explained

RIGHTS = (
    "the operator may not run a kube-scheduler: kubectl apply -k manifests/dedicated/; on a server without"
    " MutatingAdmissionPolicy: kubectl apply -k manifests/dedicated/scheduler/"
)
WRITE_IT = f"pods have to say schedulerName: {DEDICATED_SCHEDULER} by themselves"
HOW_PODS_COME: Mapping[ReadResult, str] = {
    ReadResult.FOUND: "pods that ask for cards are pointed at it when they are created",
    ReadResult.MISSING: (
        f"{WRITE_IT}, until the MutatingAdmissionPolicy is installed that writes it:"
        " kubectl apply -f manifests/dedicated/pods.yaml"
    ),
    ReadResult.FORBIDDEN: "whether pods are pointed at it is not seen: kubectl apply -k manifests/dedicated/",
    ReadResult.NOT_SERVED: f"the API server has no MutatingAdmissionPolicy, so {WRITE_IT}",
}


def condition(situation: Situation) -> ConditionState:
    if problem := next(_obstacles(situation), None):
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    facts = situation.snapshot.server
    choice = engine_choice(situation)
    image = scheduler_image(situation.installation, choice, situation.snapshot.kubernetes)
    how = HOW_PODS_COME[facts.pod_policy] if facts else ""
    message = f"{DEDICATED_SCHEDULER} ({image}, engine {choice.engine}) places pods; {how}"
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)


def disconnecting(_: Situation) -> Problem:
    return Problem(conditions.RESTORING, f"{DEDICATED_SCHEDULER} is being removed")


def disconnected(_: Situation) -> Problem:
    return Problem(conditions.RESTORED, f"{DEDICATED_SCHEDULER} is gone")


def _obstacles(situation: Situation) -> Iterator[Problem]:
    snapshot = situation.snapshot
    facts, present = snapshot.server, snapshot.deployments.get(DEDICATED_SCHEDULER)
    # Only people can give the rights.
    if facts and facts.pods_without_scheduler is None:
        yield Problem(conditions.RIGHTS_MISSING, RIGHTS)
    # The image depends on the version.
    if facts is None or not snapshot.kubernetes:
        message = "waiting for the version of the API server, which is that of kube-scheduler, too"
        yield Problem(conditions.SCHEDULER_NOT_READY, message)
    # Until the scheduler serves, pods wait.
    is_desired = is_as_desired(snapshot, situation.installation)
    if not (present and present.is_rolled_out and is_desired):
        reasons = {
            pod.name: pod.last_words or pod.waiting or "it is not ready yet"
            for pod in snapshot.dedicated_pods
            if not pod.ready
        }
        message = explained(reasons) or f"the Deployment {DEDICATED_SCHEDULER} is being made or changed"
        if engine_choice(situation).engine is Engine.PLUGIN and any(map(cannot_be_run, reasons.values())):
            message += f"; {WITHOUT_OUR_IMAGE}"
        yield Problem(conditions.SCHEDULER_NOT_READY, message)
