"""The condition about the kube-schedulers that hostctl connects."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Engine
from gpushare_core.api.names import CONTROL_PLANE_LABEL, SCHEDULER_LABEL
from gpushare_core.api.served import Problem
from gpushare_operator.backends.engine_image import WITHOUT_OUR_IMAGE, cannot_be_pulled
from gpushare_operator.backends.extender_workload.hosts import AWAY, unready_extenders, why_no_extender
from gpushare_operator.backends.kube_scheduler.engine import engine_choice, obstacle
from gpushare_operator.backends.kube_scheduler.hostctl_runs import installs, restores
from gpushare_operator.backends.kube_scheduler.hosts import hosts_let_go, unlabelled_hosts
from gpushare_operator.backends.kube_scheduler.job_history import Attempt, HistoryState, JobHistory
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.labels import LET_GO_ANNOTATION, RETRY_ANNOTATION
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.decisive_policy import scheduler_needed
from gpushare_operator.policies.wording import explained, listed

NO_CONTROL_PLANE = (
    f"no node has the label {CONTROL_PLANE_LABEL}: this backend edits the kube-scheduler that runs as static"
    " pod on such nodes; label the node that runs it, if there is one"
)
HOW_TO_ASK = (
    "the earlier manifest is in force, and the operator edits again when one of its inputs changes;"
    f" to try it now: kubectl annotate gpusharepolicy {{policy}} {RETRY_ANNOTATION}=$(date +%s) --overwrite"
)
HOW_TO_LET_GO = (
    "if a host is lost for good: kubectl annotate gpusharepolicy {policy} "
    f"{LET_GO_ANNOTATION}={{nodes}} --overwrite"
)
LET_GO = (
    "not restored, because its Node is gone or somebody gave it up: {nodes}; when such a host comes back, the"
    " operator restores it if its Node has the label " + SCHEDULER_LABEL + ", which a new Node"
    " lacks: kubectl label node NAME " + SCHEDULER_LABEL + "=0"
)
UNLABELLED = (
    "edited, but no longer a control-plane node, so no extender runs there: {nodes}; it is being restored,"
    f" and connected again once it is labelled {CONTROL_PLANE_LABEL}="
)
LOST = (
    "its kube-scheduler runs without {what}, as after an upgrade of the control plane; it is being connected"
    " again"
)
REMEDY = f"; {WITHOUT_OUR_IMAGE}"
OUT_OF_TIME = "DeadlineExceeded"
"""Why a Job failed. Its pod is deleted then."""
ALL_RESTORED = "every kube-scheduler is as it was before"


@dataclass(frozen=True, slots=True)
class _HostProgress:
    """What the checks look at; ``histories`` are of connecting, or of restoring when a policy goes."""

    situation: Situation
    histories: Sequence[JobHistory]

    def nodes_in(self, *states: HistoryState) -> list[str]:
        return [history.node.name for history in self.histories if history.state in states]

    def away_in(self, *states: HistoryState) -> list[str]:
        histories = (history for history in self.histories if history.state in states)
        return [history.node.name for history in histories if not history.node.ready]

    def describe(self, what: str, *states: HistoryState) -> str:
        """Returns ``what`` happens on the nodes in ``states``, and on which of them it waits for the node."""
        names, away = self.nodes_in(*states), self.away_in(*states)
        if not away:
            return f"{listed(names)}: {what}" if names else ""
        here = sorted(set(names) - set(away))
        waits = f"{listed(away)}: {AWAY}, and its turn comes when it is back"
        return f"{listed(here)}: {what}; {waits}" if here else waits


def condition(situation: Situation) -> ConditionState:
    installing = _HostProgress(situation, installs(situation))
    if problem := next(filter(None, _obstacles(installing)), None):
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    names = listed(history.node.name for history in installing.histories)
    image = next((history.run.scheduler_image for history in installing.histories), "")
    how = f"({image}, engine {Engine.PLUGIN}) places pods by cards" if image else "asks the extender"
    message = f"kube-scheduler {how} on {names}"
    return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)


def disconnecting(situation: Situation) -> Problem:
    restoring = _HostProgress(situation, restores(situation))
    # Where hostctl failed, nothing else matters before that is solved. What is left in the end is the
    # extender's removal.
    unfinished = _no_restore_failed(restoring) or _no_restore_is_left(restoring)
    removing = Problem(conditions.RESTORING, f"{ALL_RESTORED}; the extender is being removed")
    return _with_hosts_let_go(situation.snapshot, unfinished or removing)


def disconnected(situation: Situation) -> Problem:
    return _with_hosts_let_go(situation.snapshot, Problem(conditions.RESTORED, ALL_RESTORED))


def _with_hosts_let_go(snapshot: ClusterSnapshot, problem: Problem) -> Problem:
    nodes = [] if scheduler_needed(snapshot) else hosts_let_go(snapshot)
    if not nodes:
        return problem
    return Problem(conditions.HOSTS_LET_GO, f"{LET_GO.format(nodes=listed(nodes))}; {problem.message}")


def _obstacles(progress: _HostProgress) -> Iterator[Problem | None]:
    snapshot = progress.situation.snapshot
    calls_extender = engine_choice(progress.situation).engine is Engine.EXTENDER
    # Only people can give rights.
    yield obstacle(progress.situation)
    # An edited host that lost its labels has no extender any more.
    if unlabelled := [node.name for node in unlabelled_hosts(snapshot)]:
        yield Problem(conditions.HOSTS_UNLABELLED, UNLABELLED.format(nodes=listed(unlabelled)))
    # Without a control plane there is nothing to connect.
    if not progress.histories:
        yield Problem(conditions.NO_CONTROL_PLANE, NO_CONTROL_PLANE)
    # hostctl waits for the extender: if that ends by itself, hostctl only fails because of it.
    if calls_extender:
        yield _ended_extenders(progress)
    # Where hostctl failed, nothing else matters before that is solved.
    yield _failed_attempts(progress, conditions.INSTALL_FAILED)
    # Then hosts that have lost the edit.
    lost = {history.node.name: _lost(history) for history in progress.histories if _has_lost_edit(history)}
    if lost:
        yield Problem(conditions.CONNECTION_LOST, explained(lost))
    # An edit under way restarts the scheduler: the extender's state does not count meanwhile.
    if running := progress.describe("kube-scheduler is being connected", HistoryState.RUNNING):
        yield Problem(conditions.INSTALLING, running + _what_runs_wait_for(progress))
    # A scheduler is pointed at the extender only once it is ready.
    if calls_extender and (
        unready := unready_extenders(snapshot, (history.node for history in progress.histories))
    ):
        yield Problem(conditions.EXTENDER_NOT_READY, explained(unready))
    # Nothing is in the way any more.
    due = (HistoryState.DUE, HistoryState.BACKOFF)
    if message := progress.describe("kube-scheduler is about to be connected", *due):
        yield Problem(conditions.INSTALLING, message)


def _what_runs_wait_for(progress: _HostProgress) -> str:
    """Such as the image of kube-scheduler, which a host cannot pull."""
    running = (history for history in progress.histories if history.state is HistoryState.RUNNING)
    attempts = (history.last for history in running if history.last)
    return "".join(map(_what_it_waits_for, attempts))


def _what_it_waits_for(attempt: Attempt) -> str:
    waiting = attempt.pod.waiting if attempt.pod else ""
    if not waiting:
        return ""
    is_ours = attempt.job.engine == Engine.PLUGIN and cannot_be_pulled(waiting)
    return f"; {waiting}{REMEDY if is_ours else ''}"


def _ended_extenders(progress: _HostProgress) -> Problem | None:
    snapshot = progress.situation.snapshot
    ended = {
        history.node.name: why_no_extender(snapshot, history.node)
        for history in progress.histories
        if (pod := snapshot.extender_pods.get(history.node.name)) and pod.last_words and not pod.ready
    }
    return Problem(conditions.EXTENDER_NOT_READY, explained(ended)) if ended else None


def _has_lost_edit(history: JobHistory) -> bool:
    is_repaired = history.state is HistoryState.RUNNING and history.last and history.last.job.has_drifted
    return history.has_drifted or bool(is_repaired)


def _lost(history: JobHistory) -> str:
    has_image = bool(history.run.scheduler_image)
    return LOST.format(what="gpushare's configuration or image" if has_image else "gpushare's configuration")


def _no_restore_failed(progress: _HostProgress) -> Problem | None:
    problem = _failed_attempts(progress, conditions.RESTORE_FAILED)
    if problem is None:
        return None
    failed = [history.node.name for history in progress.histories if history.failure]
    return Problem(problem.reason, f"{problem.message}; {_how_to_let_go(progress, failed)}")


def _no_restore_is_left(progress: _HostProgress) -> Problem | None:
    unfinished = (HistoryState.RUNNING, HistoryState.DUE, HistoryState.BACKOFF)
    names, away = progress.nodes_in(*unfinished), progress.away_in(*unfinished)
    message = f"kube-scheduler is being restored on {listed(names)}"
    how = f"; not Ready: {listed(away)}; {_how_to_let_go(progress, away)}" if away else ""
    return Problem(conditions.RESTORING, f"{message}{how}") if names else None


def _how_to_let_go(progress: _HostProgress, names: Sequence[str]) -> str:
    return HOW_TO_LET_GO.format(policy=progress.situation.policy, nodes=",".join(sorted(names)))


def _failed_attempts(progress: _HostProgress, reason: str) -> Problem | None:
    failures = {
        history.node.name: history.failure for history in progress.histories if history.failure is not None
    }
    if not failures:
        return None
    needs_person = any(attempt.needs_person or attempt.rolled_back for attempt in failures.values())
    away = {history.node.name: f"{AWAY}; " for history in progress.histories if not history.node.ready}
    messages = {
        node: f"{away.get(node, '')}{_failure_message(attempt)}" for node, attempt in failures.items()
    }
    if any(attempt.rolled_back for attempt in failures.values()):
        ask = HOW_TO_ASK.format(policy=progress.situation.policy)
        return Problem(conditions.NEEDS_ATTENTION, f"{explained(messages)}; {ask}")
    return Problem(conditions.NEEDS_ATTENTION if needs_person else reason, explained(messages))


def _failure_message(attempt: Attempt) -> str:
    """Returns hostctl's message, else the pod's last one if that is no report, else what Kubernetes says of
    the Job. Where hostctl never began, our kube-scheduler's image may be why."""
    text = attempt.pod.termination.strip() if attempt.pod else ""
    never_began = attempt.job.engine == Engine.PLUGIN and attempt.exit_code is None
    if message := attempt.report.get("message") or (not text.startswith(("{", "[")) and text):
        return f"{message}{REMEDY if never_began else ''}"
    if never_began and attempt.pod is None and attempt.job.failure == OUT_OF_TIME:
        return (
            f"Job {attempt.job.name} failed ({attempt.job.failure}), and its pod is gone; if the host could"
            f" not pull the image of our kube-scheduler in time, {WITHOUT_OUR_IMAGE}"
        )
    waiting = attempt.pod.waiting if attempt.pod else ""
    return f"Job {attempt.job.name} failed ({waiting or attempt.job.failure}); see its pod's log"
