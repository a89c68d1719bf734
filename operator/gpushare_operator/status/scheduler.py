"""The condition about the cluster's scheduler."""

import json
from datetime import datetime

from gpushare_core.api.names import CONTROL_PLANE_LABEL
from gpushare_core.api.policy import PolicySpec
from gpushare_operator.cluster.objects import NodeView, PolicyView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.hostctl_history import Entry, Standing
from gpushare_operator.decide.scheduler import extender_ready, installs, is_disconnected, restores
from gpushare_operator.decide.support import unserved_policy
from gpushare_operator.status import conditions as reasons
from gpushare_operator.status.verdict import Verdict, fails, holds
from gpushare_operator.status.wording import explained, listed

NO_CONTROL_PLANE = (
    f"no node has the label {CONTROL_PLANE_LABEL}: this backend edits the kube-scheduler that runs as static"
    " pod on such nodes; label the node that runs it, if there is one"
)


def scheduler_configured(snapshot: Snapshot, policy: PolicyView, now: datetime) -> Verdict:
    if policy.deleting:
        return _restoring(snapshot, now)
    if policy.spec and (reason := _unserved(policy.spec)):
        return reason
    if not snapshot.control_planes:
        return _verdict(reasons.NO_CONTROL_PLANE, NO_CONTROL_PLANE)
    return _configured(snapshot, installs(snapshot, now))


def _unserved(spec: PolicySpec) -> Verdict | None:
    found = unserved_policy(spec)
    return _verdict(found.reason, found.message) if found else None


def _configured(snapshot: Snapshot, entries: list[Entry]) -> Verdict:
    stuck = _stuck(entries, reasons.INSTALL_FAILED)
    if stuck:
        return stuck
    busy = [entry.node.name for entry in entries if entry.standing is Standing.BUSY]
    if busy:
        return _verdict(reasons.INSTALLING, f"{listed(busy)}: kube-scheduler is being connected")
    unready = {
        entry.node.name: _why_no_extender(snapshot, entry.node)
        for entry in entries
        if not extender_ready(snapshot, entry.node)
    }
    if unready:
        return _verdict(reasons.EXTENDER_NOT_READY, explained(unready))
    due = [entry.node.name for entry in entries if entry.standing is not Standing.DONE]
    if due:
        return _verdict(reasons.INSTALLING, f"{listed(due)}: kube-scheduler is about to be connected")
    names = listed(entry.node.name for entry in entries)
    return holds(
        reasons.SCHEDULER_CONFIGURED, reasons.CONFIGURED, f"kube-scheduler asks the extender on {names}"
    )


def _restoring(snapshot: Snapshot, now: datetime) -> Verdict:
    if snapshot.scheduler_needed:
        return _verdict(reasons.DELETING, "the scheduler stays connected: other policies need it")
    if is_disconnected(snapshot):
        return _verdict(reasons.RESTORED, "every kube-scheduler is as it was before")
    entries = restores(snapshot, now)
    stuck = _stuck(entries, reasons.RESTORE_FAILED)
    waiting = [entry.node.name for entry in entries if entry.standing is not Standing.DONE]
    if stuck:
        return stuck
    if waiting:
        return _verdict(reasons.RESTORING, f"kube-scheduler is being restored on {listed(waiting)}")
    return _verdict(
        reasons.RESTORING, "every kube-scheduler is as it was before; the extender is being removed"
    )


def _stuck(entries: list[Entry], reason: str) -> Verdict | None:
    """Nodes where hostctl failed: nothing else matters before that is solved."""
    failed = {entry.node.name: _failure(entry) for entry in entries if _has_failed(entry)}
    needs_person = any(entry.needs_person for entry in entries if _has_failed(entry))
    if not failed:
        return None
    return _verdict(reasons.NEEDS_ATTENTION if needs_person else reason, explained(failed))


def _has_failed(entry: Entry) -> bool:
    return entry.job is not None and entry.job.failed and entry.job.action == entry.wanted


def _failure(entry: Entry) -> str:
    """What hostctl said, else what Kubernetes says of the Job."""
    told = _report(entry.pod.termination) if entry.pod else ""
    if told:
        return told
    waiting = entry.pod.waiting if entry.pod else ""
    job = entry.job.name if entry.job else ""
    why = waiting or (entry.job.failure if entry.job else "")
    return f"Job {job} failed ({why}); see its pod's log"


def _report(termination: str) -> str:
    """The message in hostctl's final report; empty when it left none."""
    try:
        report = json.loads(termination)
    except ValueError:
        return termination.strip()
    return str(report.get("message", "")) if isinstance(report, dict) else ""


def _why_no_extender(snapshot: Snapshot, node: NodeView) -> str:
    pod = snapshot.extender_hosts.get(node.name)
    if pod is None:
        return "the extender is being started" if node.ready else "the node is not Ready"
    return pod.waiting or f"the extender ({pod.name}) is not ready yet"


def _verdict(reason: str, message: str) -> Verdict:
    return fails(reasons.SCHEDULER_CONFIGURED, reason, message)
