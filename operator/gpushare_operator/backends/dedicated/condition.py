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
    "the operator lacks the rights to run a kube-scheduler: kubectl apply -k manifests/dedicated/; on a"
    " server without MutatingAdmissionPolicy: kubectl apply -k manifests/dedicated/scheduler/"
)
WRITE_IT = f"each pod has to set schedulerName: {DEDICATED_SCHEDULER} itself"
HOW_PODS_COME: Mapping[ReadResult, str] = {
    ReadResult.FOUND: "pods that ask for cards get its schedulerName when they are created",
    ReadResult.MISSING: (
        f"{WRITE_IT}, until you install the MutatingAdmissionPolicy that sets it:"
        " kubectl apply -f manifests/dedicated/pods.yaml"
    ),
    ReadResult.FORBIDDEN: (
        "the operator cannot see whether pods get its schedulerName: kubectl apply -k manifests/dedicated/"
    ),
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
        message = "waiting for the API server's version: kube-scheduler runs in the same one"
        yield Problem(conditions.SCHEDULER_NOT_READY, message)
    # Until the scheduler serves, pods wait.
    is_desired = is_as_desired(snapshot, situation.installation)
    if not (present and present.is_rolled_out and is_desired):
        reasons = {
            pod.name: pod.last_words or pod.waiting or "it is not ready yet"
            for pod in snapshot.dedicated_pods
            if not pod.ready
        }
        message = explained(reasons) or f"the Deployment {DEDICATED_SCHEDULER} is being created or changed"
        if engine_choice(situation).engine is Engine.PLUGIN and any(map(cannot_be_run, reasons.values())):
            message += f"; {WITHOUT_OUR_IMAGE}"
        yield Problem(conditions.SCHEDULER_NOT_READY, message)
