"""The condition about a kube-scheduler of our own, and about pods that it does not get."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Backend
from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PodObject, PolicyObject, ReadResult
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.dedicated import is_as_wanted
from gpushare_operator.decide.teardown import is_disconnected
from gpushare_operator.desired.names import Installation
from gpushare_operator.status import conditions
from gpushare_operator.status.checks import first_failure
from gpushare_operator.status.wording import counted, explained, listed

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


@dataclass(frozen=True, slots=True)
class _Connection:
    snapshot: ClusterSnapshot
    policy: PolicyObject
    installation: Installation


def dedicated_configured(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, _: datetime
) -> ConditionState:
    checks = GOING_CHECKS if policy.deleting else CONFIGURED_CHECKS
    if problem := first_failure(checks, _Connection(snapshot, policy, installation)):
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    facts = snapshot.server
    image = installation.scheduler_image_for(facts.version) if facts else ""
    how = HOW_PODS_COME[facts.pod_policy] if facts else ""
    message = f"{DEDICATED_SCHEDULER} ({image}) places pods; {how}"
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)


def pods_without_scheduler(snapshot: ClusterSnapshot) -> list[Problem]:
    """Returns what is said of pods that ask for cards and wait for a scheduler that knows none."""
    facts = snapshot.server
    if facts is None or not facts.pods_without_scheduler:
        return []
    number = counted(len(facts.pods_without_scheduler), "pod")
    pods = f"{number} with schedulerName: {facts.absent_scheduler} ({listed(facts.pods_without_scheduler)})"
    if facts.absent_scheduler == DEDICATED_SCHEDULER:
        message = f"nobody places {pods} any more: delete them, and write no schedulerName in new ones"
    else:
        message = f"nobody places {pods} by cards: delete them{_how_to_create(facts.pod_policy)}"
    return [Problem(conditions.PODS_NOT_SCHEDULED, message)]


def _how_to_create(pod_policy: ReadResult) -> str:
    if pod_policy is ReadResult.FOUND:
        return f"; new ones are pointed at {DEDICATED_SCHEDULER}"
    return f", and create them with schedulerName: {DEDICATED_SCHEDULER}"


def _is_permitted(connection: _Connection) -> Problem | None:
    facts = connection.snapshot.server
    return (
        Problem(conditions.RIGHTS_MISSING, RIGHTS) if facts and facts.pods_without_scheduler is None else None
    )


def _version_is_known(connection: _Connection) -> Problem | None:
    facts = connection.snapshot.server
    if facts and facts.version:
        return None
    message = "waiting for the version of the API server, which is that of kube-scheduler, too"
    return Problem(conditions.SCHEDULER_NOT_READY, message)


def _scheduler_is_ready(connection: _Connection) -> Problem | None:
    snapshot = connection.snapshot
    present = snapshot.deployments.get(DEDICATED_SCHEDULER)
    if present and present.is_rolled_out and is_as_wanted(snapshot, connection.installation):
        return None
    reasons = {pod.name: _why(pod) for pod in snapshot.dedicated_pods if not pod.ready}
    message = explained(reasons) or f"the Deployment {DEDICATED_SCHEDULER} is being made or changed"
    return Problem(conditions.SCHEDULER_NOT_READY, message)


def _why(pod: PodObject) -> str:
    return pod.last_words or pod.waiting or "it is not ready yet"


CONFIGURED_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # Only people can give it.
    _is_permitted,
    # The image depends on it.
    _version_is_known,
    # Until it serves pods wait.
    _scheduler_is_ready,
)


def _is_needed_by_others(connection: _Connection) -> Problem | None:
    if needed_backend(connection.snapshot) is not Backend.DEDICATED:
        return None
    return Problem(conditions.DELETING, f"{DEDICATED_SCHEDULER} stays: other policies need it")


def _is_gone(connection: _Connection) -> Problem:
    if is_disconnected(connection.snapshot, Backend.DEDICATED):
        return Problem(conditions.RESTORED, f"{DEDICATED_SCHEDULER} is gone")
    return Problem(conditions.RESTORING, f"{DEDICATED_SCHEDULER} is being removed")


GOING_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # Nothing is removed before the last policy goes.
    _is_needed_by_others,
    # It goes by itself.
    _is_gone,
)
