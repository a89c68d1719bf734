"""Takes the extender out of kube-scheduler: afterwards the node is as it was before us."""

import logging
from collections.abc import Callable
from dataclasses import replace

from gpushare_hostctl import attempts
from gpushare_hostctl.decide.run import plan
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.record import PendingRestart
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.run.snapshot import File, HostSnapshot
from gpushare_hostctl.decide.scheduler import health_endpoint, manifest
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerNotServingError, StoppedError
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)

_LOOKING = 10.0
"""Seconds in which a kube-scheduler that serves answers, on a busy node, too."""

_NOT_LOOKED_AT = ProbeResult(serving=False, detail="not looked at")


def run(node: ControlPlaneNode) -> Report:
    """Restores, or finishes an interrupted restoration.

    A manifest that somebody else writes meanwhile is kept, less our part. Our folder is removed last, so that
    until then another run has all it needs. A kube-scheduler that serves neither before nor after, or not at
    a second run either, is not ours to heal: the message says so.

    Raises RetryableError when a kube-scheduler that served does not come back, NeedsPersonError when the
    manifest cannot be read.
    """
    return attempts.with_fresh_snapshots(node, lambda _: _attempt(node))


def _attempt(node: ControlPlaneNode) -> Report:
    snapshot = node.snapshot()
    restore_plan = plan.restore(snapshot)
    addition = ""
    if snapshot.manifest is not None and restore_plan.manifest is not None:
        addition = _put_back(node, snapshot, restore_plan.manifest, current=snapshot.manifest)
    elif snapshot.manifest is not None:
        addition = _await_interrupted(node, snapshot, snapshot.manifest)
    if (final := restore_plan.manifest or snapshot.manifest) is not None:
        # Somebody may have put an earlier manifest back, which names our files again.
        node.require_manifest(final)
    left = node.remove_folder()
    addition += (
        f"; left in {node.paths.folder}, because it is not gpushare's: {', '.join(left[:5])}" if left else ""
    )
    return Report(result=restore_plan.result, message=restore_plan.message + addition)


def _put_back(node: ControlPlaneNode, snapshot: HostSnapshot, file: File, *, current: File) -> str:
    """Puts the manifest in its place and waits. Returns what else is to be said of kube-scheduler."""
    endpoint, unchecked = _endpoint(node, file)
    before = _look(node, endpoint) if endpoint else _NOT_LOOKED_AT
    node.make_folder()
    if snapshot.record is not None:
        pending = PendingRestart(sha256=file.sha256, before=before.process)
        node.note_record(replace(snapshot.record, pending=pending))
    # What a kube-scheduler of the edited manifest reads, and no other.
    config = manifest.raw_config(manifest.parse(current.content)) or node.paths.folder
    with node.files.watch_reads(config) as was_read:
        node.write_manifest(file, expected=current)
        _LOG.info("restored %s, waiting for kube-scheduler", node.paths.manifest)
        if endpoint is None:
            return unchecked
        # Where an edit was interrupted the kubelet may never have seen it; then there is no restart to see.
        interrupted = snapshot.record is None or snapshot.record.pending is not None
        try:
            _await_restart(
                node, file, endpoint, before=before.process, was_read=was_read, may_be_missed=interrupted
            )
        except SchedulerNotServingError as error:
            if not before.serving:
                return _not_ours(error)
            raise RetryableError(
                f"the manifest is as it was before gpushare, but {error}; run restore again to finish, the"
                f" backup is in {node.paths.folder} until then"
            ) from error
    return ""


def _await_interrupted(node: ControlPlaneNode, snapshot: HostSnapshot, current: File) -> str:
    """Waits for a restart whose end an interrupted run did not see. Returns as ``_put_back``."""
    pending = snapshot.record.pending if snapshot.record else None
    endpoint, unchecked = _endpoint(node, current)
    if pending is None or pending.sha256 != current.sha256:
        return ""
    if endpoint is None:
        return unchecked
    try:
        _await_restart(node, current, endpoint, before=pending.before, may_be_missed=True)
    except SchedulerNotServingError as error:
        return _not_ours(error)
    return ""


def _not_ours(error: SchedulerNotServingError) -> str:
    return (
        f"; {error}, and nothing of gpushare's is left that could be the cause: see the log of kube-scheduler"
    )


def _look(node: ControlPlaneNode, endpoint: HealthEndpoint) -> ProbeResult:
    """Returns a probe of the kube-scheduler that serves, or after a while of one that does not."""
    try:
        return node.waiter.until_serving(endpoint, timeout=min(_LOOKING, node.waiter.timeout))
    except (SchedulerNotServingError, StoppedError):
        return node.waiter.prober.probe(endpoint)


def _endpoint(node: ControlPlaneNode, file: File) -> tuple[HealthEndpoint | None, str]:
    """Returns the endpoint, or why there is none.

    The flags are not ours: one that cannot be read must not keep us from restoring.
    """
    try:
        endpoint = health_endpoint.find(manifest.parse(file.content), config=_config(node, file))
    except NeedsPersonError as error:
        _LOG.warning("restoring without a check of kube-scheduler: %s", error)
        return None, f"; whether kube-scheduler serves was not checked: {error}"
    return endpoint, "" if endpoint else "; whether kube-scheduler serves was not checked: --secure-port=0"


def _config(node: ControlPlaneNode, file: File) -> bytes | None:
    try:
        source = node.read_config_source(file)
    except NeedsPersonError:
        return None
    return source.content if source else None


def _await_restart(
    node: ControlPlaneNode,
    file: File,
    endpoint: HealthEndpoint,
    *,
    before: ProcessIdentity,
    was_read: Callable[[], bool] | None = None,
    may_be_missed: bool,
) -> None:
    """Waits until the kube-scheduler of ``file``, a manifest without us, serves steadily.

    ``was_read``: whether our configuration was read since, which only a kube-scheduler of the edited manifest
    does; None where that is unknown.
    """

    def lasting() -> float:
        return node.waiter.unproven if was_read is None or was_read() else node.waiter.proven

    node.waiter.until_restarted(
        endpoint,
        before=before,
        lasting=lasting,
        may_miss_restart=may_be_missed,
        check=lambda: node.require_manifest(file),
    )
