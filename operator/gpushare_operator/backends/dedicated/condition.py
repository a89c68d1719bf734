"""The condition about a kube-scheduler of our own, and about pods that it does not get."""

from collections.abc import Callable, Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.api.served import Problem
from gpushare_operator.backends.dedicated.connection import is_as_wanted
from gpushare_operator.backends.teardown import Situation
from gpushare_operator.cluster.objects import PodObject, ReadResult
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import explained, first_failure

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
    if problem := first_failure(CONFIGURED_CHECKS, situation):
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    facts = situation.snapshot.server
    image = situation.installation.scheduler_image_for(facts.version) if facts else ""
    how = HOW_PODS_COME[facts.pod_policy] if facts else ""
    message = f"{DEDICATED_SCHEDULER} ({image}) places pods; {how}"
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)


def disconnecting(_: Situation) -> Problem:
    return Problem(conditions.RESTORING, f"{DEDICATED_SCHEDULER} is being removed")


def disconnected(_: Situation) -> Problem:
    return Problem(conditions.RESTORED, f"{DEDICATED_SCHEDULER} is gone")


def _is_permitted(situation: Situation) -> Problem | None:
    facts = situation.snapshot.server
    return (
        Problem(conditions.RIGHTS_MISSING, RIGHTS) if facts and facts.pods_without_scheduler is None else None
    )


def _version_is_known(situation: Situation) -> Problem | None:
    facts = situation.snapshot.server
    if facts and facts.version:
        return None
    message = "waiting for the version of the API server, which is that of kube-scheduler, too"
    return Problem(conditions.SCHEDULER_NOT_READY, message)


def _scheduler_is_ready(situation: Situation) -> Problem | None:
    snapshot = situation.snapshot
    present = snapshot.deployments.get(DEDICATED_SCHEDULER)
    if present and present.is_rolled_out and is_as_wanted(snapshot, situation.installation):
        return None
    reasons = {pod.name: _why(pod) for pod in snapshot.dedicated_pods if not pod.ready}
    message = explained(reasons) or f"the Deployment {DEDICATED_SCHEDULER} is being made or changed"
    return Problem(conditions.SCHEDULER_NOT_READY, message)


def _why(pod: PodObject) -> str:
    return pod.last_words or pod.waiting or "it is not ready yet"


CONFIGURED_CHECKS: tuple[Callable[[Situation], Problem | None], ...] = (
    # Only people can give it.
    _is_permitted,
    # The image depends on it.
    _version_is_known,
    # Until it serves pods wait.
    _scheduler_is_ready,
)
