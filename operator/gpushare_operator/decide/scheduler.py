"""Connecting the cluster's schedulers to the extender while any policy needs it, and undoing that after."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_operator.cluster.objects import JobView, NodeView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import Action as Act
from gpushare_operator.decide.actions import ApplyDaemonSet, CreateJob, DeleteDaemonSet, DeleteJob, LabelNode
from gpushare_operator.decide.hostctl_history import Entry, Standing, read_journal, valid_entries
from gpushare_operator.desired.daemon_sets import extender_daemon_set
from gpushare_operator.desired.drift import says
from gpushare_operator.desired.hostctl_job import Action, host_job
from gpushare_operator.desired.installation import Installation
from gpushare_operator.desired.names import EXTENDER_NAME


def connect(snapshot: Snapshot, installation: Installation, now: datetime) -> Iterator[Act]:
    """The extender first; a scheduler is pointed at it only once it is ready on that very node."""
    wanted = extender_daemon_set(installation)
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or not (present.deleting or says(present.body, wanted)):
        yield ApplyDaemonSet(EXTENDER_NAME, wanted)
    for entry in installs(snapshot, now):
        if not extender_ready(snapshot, entry.node):
            continue
        if SCHEDULER_LABEL not in entry.node.labels:
            yield _mark(entry.node, "connected")
        elif entry.standing is Standing.DUE:
            yield _next_job(entry, installation)
    yield from _superseded(snapshot)


def disconnect(snapshot: Snapshot, installation: Installation, now: datetime) -> Iterator[Act]:
    """Schedulers first, while the extender still answers; then the extender, the marks, the journal."""
    entries = restores(snapshot, now)
    yield from (_next_job(entry, installation) for entry in entries if entry.standing is Standing.DUE)
    if any(entry.standing is not Standing.DONE for entry in entries):
        yield from _superseded(snapshot)
        return
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    if extender is None and (marked := _marked(snapshot)):
        yield from (_mark(node, None) for node in marked)
    elif extender is None:
        yield from (DeleteJob(job.name, job.uid) for job in snapshot.jobs.values() if not job.deleting)
    elif not extender.deleting:
        yield DeleteDaemonSet(extender.name, extender.uid)


def installs(snapshot: Snapshot, now: datetime) -> list[Entry]:
    return [read_journal(snapshot, node, Action.INSTALL, now) for node in snapshot.control_planes]


def restores(snapshot: Snapshot, now: datetime) -> list[Entry]:
    """One for every node with a journal or a mark, and for every control plane while the extender stands.

    Somebody may have deleted the Jobs, or the whole namespace: a scheduler that asks an extender that is gone
    would place no pod that shares cards, and restoring one that was never edited does nothing. A node that is
    gone needs none.
    """
    suspects = (*_marked(snapshot), *_under_extender(snapshot))
    names = {*snapshot.journals, *(node.name for node in suspects)}
    nodes = (snapshot.nodes.get(name) for name in sorted(names))
    return [read_journal(snapshot, node, Action.RESTORE, now) for node in nodes if node]


def _under_extender(snapshot: Snapshot) -> Sequence[NodeView]:
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    return [] if extender is None or extender.deleting else snapshot.control_planes


def _marked(snapshot: Snapshot) -> list[NodeView]:
    """Nodes that say so themselves: no Job, no namespace and no policy has to survive for it."""
    return [node for node in snapshot.nodes.values() if SCHEDULER_LABEL in node.labels]


def _mark(node: NodeView, value: str | None) -> LabelNode:
    return LabelNode(node.name, node.uid, {SCHEDULER_LABEL: value})


def extender_ready(snapshot: Snapshot, node: NodeView) -> bool:
    pod = snapshot.extender_hosts.get(node.name)
    return pod is not None and pod.ready


def is_disconnected(snapshot: Snapshot) -> bool:
    """Whether nothing of ours is left at the schedulers."""
    ours = snapshot.jobs or EXTENDER_NAME in snapshot.daemon_sets or _marked(snapshot)
    return not (ours or _extender_stopping(snapshot))


def _extender_stopping(snapshot: Snapshot) -> bool:
    """A kubelet that is away cannot say that its pod has stopped."""
    hosts = (snapshot.nodes.get(name) for name in snapshot.extender_hosts)
    return any(node.ready for node in hosts if node)


def _next_job(entry: Entry, installation: Installation) -> CreateJob:
    body = host_job(entry.wanted, entry.node, entry.next_sequence, installation)
    return CreateJob(body["metadata"]["name"], body)


def _superseded(snapshot: Snapshot) -> Iterator[DeleteJob]:
    """Entries that a later one has replaced, and those about nodes that are no more."""
    for name in sorted(snapshot.journals):
        node = snapshot.nodes.get(name)
        keep = valid_entries(snapshot, node)[-1:] if node else []
        yield from (_deletion(job) for job in snapshot.journal(name) if job not in keep and not job.deleting)


def _deletion(job: JobView) -> DeleteJob:
    return DeleteJob(job.name, job.uid)
