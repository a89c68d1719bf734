"""The condition about the cluster's scheduler."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import CONTROL_PLANE_LABEL
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.hostctl_history import Attempt, HistoryState, JobHistory
from gpushare_operator.decide.policy_problems import policy_problem
from gpushare_operator.decide.scheduler import extender_ready, installs, restores, scheduler_needed
from gpushare_operator.decide.teardown import is_disconnected
from gpushare_operator.status import conditions
from gpushare_operator.status.checks import first_failure
from gpushare_operator.status.wording import explained, listed

NO_CONTROL_PLANE = (
    f"no node has the label {CONTROL_PLANE_LABEL}: this backend edits the kube-scheduler that runs as static"
    " pod on such nodes; label the node that runs it, if there is one"
)
BEING_REMOVED = "every kube-scheduler is as it was before; the extender is being removed"


@dataclass(frozen=True, slots=True)
class _Connection:
    """What the checks look at; ``histories`` of installing, or of restoring for a policy that goes."""

    snapshot: Snapshot
    policy: PolicyObject
    histories: Sequence[JobHistory]

    def nodes_in(self, *states: HistoryState) -> list[str]:
        return [history.node.name for history in self.histories if history.state in states]


def scheduler_configured(snapshot: Snapshot, policy: PolicyObject, now: datetime) -> ConditionState:
    if policy.deleting:
        restoring = _Connection(snapshot, policy, restores(snapshot, now))
        return _false(
            first_failure(RESTORED_CHECKS, restoring) or Problem(conditions.RESTORING, BEING_REMOVED)
        )
    installing = _Connection(snapshot, policy, installs(snapshot, now))
    if problem := first_failure(CONFIGURED_CHECKS, installing):
        return _false(problem)
    names = listed(history.node.name for history in installing.histories)
    message = f"kube-scheduler asks the extender on {names}"
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)


def _false(problem: Problem) -> ConditionState:
    return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)


# While a policy needs the scheduler.


def _is_served(connection: _Connection) -> Problem | None:
    spec = connection.policy.spec
    return policy_problem(spec) if spec else None


def _has_control_plane(connection: _Connection) -> Problem | None:
    if connection.snapshot.control_planes:
        return None
    return Problem(conditions.NO_CONTROL_PLANE, NO_CONTROL_PLANE)


def _no_install_failed(connection: _Connection) -> Problem | None:
    return _failed_attempts(connection, conditions.INSTALL_FAILED)


def _no_install_runs(connection: _Connection) -> Problem | None:
    names = connection.nodes_in(HistoryState.RUNNING)
    message = f"{listed(names)}: kube-scheduler is being connected"
    return Problem(conditions.INSTALLING, message) if names else None


def _extenders_are_ready(connection: _Connection) -> Problem | None:
    snapshot, nodes = connection.snapshot, [history.node for history in connection.histories]
    unready = {
        node.name: _why_no_extender(snapshot, node) for node in nodes if not extender_ready(snapshot, node)
    }
    return Problem(conditions.EXTENDER_NOT_READY, explained(unready)) if unready else None


def _no_install_is_due(connection: _Connection) -> Problem | None:
    names = connection.nodes_in(HistoryState.DUE, HistoryState.BACKOFF)
    message = f"{listed(names)}: kube-scheduler is about to be connected"
    return Problem(conditions.INSTALLING, message) if names else None


CONFIGURED_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # A backend that is not served connects nothing.
    _is_served,
    # Nothing to connect.
    _has_control_plane,
    # Where hostctl failed, nothing else matters before that is solved.
    _no_install_failed,
    # An edit under way restarts the scheduler: the extender's state does not count meanwhile.
    _no_install_runs,
    # A scheduler is pointed at the extender only once it is ready.
    _extenders_are_ready,
    # Nothing is in the way any more.
    _no_install_is_due,
)


# While a policy is taken back.


def _is_needed_by_others(connection: _Connection) -> Problem | None:
    if not scheduler_needed(connection.snapshot):
        return None
    return Problem(conditions.DELETING, "the scheduler stays connected: other policies need it")


def _is_restored(connection: _Connection) -> Problem | None:
    if not is_disconnected(connection.snapshot):
        return None
    return Problem(conditions.RESTORED, "every kube-scheduler is as it was before")


def _no_restore_failed(connection: _Connection) -> Problem | None:
    return _failed_attempts(connection, conditions.RESTORE_FAILED)


def _no_restore_is_left(connection: _Connection) -> Problem | None:
    names = connection.nodes_in(HistoryState.RUNNING, HistoryState.DUE, HistoryState.BACKOFF)
    message = f"kube-scheduler is being restored on {listed(names)}"
    return Problem(conditions.RESTORING, message) if names else None


RESTORED_CHECKS: tuple[Callable[[_Connection], Problem | None], ...] = (
    # Nothing is restored before the last policy goes.
    _is_needed_by_others,
    # All is done.
    _is_restored,
    # Where hostctl failed, nothing else matters before that is solved.
    _no_restore_failed,
    # What is left after this is the extender's removal.
    _no_restore_is_left,
)


# In words.


def _failed_attempts(connection: _Connection, reason: str) -> Problem | None:
    failures = {
        history.node.name: history.failure for history in connection.histories if history.failure is not None
    }
    if not failures:
        return None
    needs_person = any(attempt.needs_person for attempt in failures.values())
    messages = {node: _failure_message(attempt) for node, attempt in failures.items()}
    return Problem(conditions.NEEDS_ATTENTION if needs_person else reason, explained(messages))


def _failure_message(attempt: Attempt) -> str:
    """Returns what hostctl said, else what Kubernetes says of the Job."""
    message = _report(attempt.pod.termination) if attempt.pod else ""
    if message:
        return message
    waiting = attempt.pod.waiting if attempt.pod else ""
    return f"Job {attempt.job.name} failed ({waiting or attempt.job.failure}); see its pod's log"


def _report(termination: str) -> str:
    """Returns the message in hostctl's final report; empty when it left none."""
    try:
        report = json.loads(termination)
    except ValueError:
        return termination.strip()
    return str(report.get("message", "")) if isinstance(report, dict) else ""


def _why_no_extender(snapshot: Snapshot, node: NodeObject) -> str:
    pod = snapshot.extender_pods.get(node.name)
    if pod is None:
        return "the extender is being started" if node.ready else "the node is not Ready"
    return pod.waiting or f"the extender ({pod.name}) is not ready yet"
