"""Takes the extender out of kube-scheduler and leaves the node as it was before us."""

import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace

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
from gpushare_hostctl.report import RunResult

_LOG = logging.getLogger(__name__)

_LOOKING = 10.0
"""Seconds in which a scheduler that serves shows it, on a busy node, too."""

_NOT_LOOKED_AT = ProbeResult(serving=False, detail="not looked at")


def run(node: ControlPlaneNode) -> RunResult:
    """Restores, or finishes an interrupted restoration.

    A manifest that somebody else writes meanwhile is kept, less our part. Our folder goes last, so that until
    then running again has all it needs. Raises RetryableError when a scheduler that served does not come
    back, NeedsPersonError when the manifest cannot be read. One that serves neither before nor after, or not
    at a second run either, is not ours to heal: the message says so.
    """
    return attempts.with_fresh_snapshots(node, lambda _: _attempt(node))


def _attempt(node: ControlPlaneNode) -> RunResult:
    snapshot = node.snapshot()
    restore_plan = plan.restore(snapshot)
    remark = ""
    if snapshot.manifest is not None and restore_plan.manifest is not None:
        remark = _put_back(node, snapshot, restore_plan.manifest, current=snapshot.manifest)
    elif snapshot.manifest is not None:
        remark = _await_interrupted(node, snapshot, snapshot.manifest)
    if (final := restore_plan.manifest or snapshot.manifest) is not None:
        # It may name our files again: who put an earlier one back puts our edit back.
        node.require_manifest(final)
    left = node.remove_folder()
    remark += f"; left in {node.paths.folder}, because it is not ours: {', '.join(left[:5])}" if left else ""
    return RunResult(result=restore_plan.result, message=restore_plan.message + remark)


def _put_back(node: ControlPlaneNode, snapshot: HostSnapshot, file: File, *, current: File) -> str:
    """Puts the manifest in its place and waits. Returns what else there is to say of kube-scheduler."""
    endpoint, unchecked = _endpoint(node, file)
    before = _look(node, endpoint) if endpoint else _NOT_LOOKED_AT
    node.make_folder()
    if snapshot.record is not None:
        pending = PendingRestart(sha256=file.sha256, before=before.process)
        node.note_record(replace(snapshot.record, pending=pending))
    with node.watch_reads(_our_config(node, current)) as was_read:
        node.write_manifest(file, expected=current)
        _LOG.info("restored %s, waiting for kube-scheduler", node.paths.manifest)
        if endpoint is None:
            return unchecked
        # Where an edit was interrupted the kubelet may never have seen it; then there is no restart to see.
        interrupted = snapshot.record is None or snapshot.record.pending is not None
        wait = _Wait(node, file, endpoint, before=before.process, may_miss_restart=interrupted)
        try:
            wait.until_restarted(was_read)
        except SchedulerNotServingError as error:
            if not before.serving:
                return _not_ours(error)
            raise RetryableError(
                f"the manifest is as before us, but {error}; run restore again to finish, the backup is in "
                f"{node.paths.folder} until then"
            ) from error
    return ""


def _await_interrupted(node: ControlPlaneNode, snapshot: HostSnapshot, current: File) -> str:
    """Waits for the restart that an interrupted run did not see the end of. Returns as ``_put_back``."""
    pending = snapshot.record.pending if snapshot.record else None
    endpoint, unchecked = _endpoint(node, current)
    if pending is None or pending.sha256 != current.sha256:
        return ""
    if endpoint is None:
        return unchecked
    try:
        _Wait(node, current, endpoint, before=pending.before, may_miss_restart=True).until_restarted(None)
    except SchedulerNotServingError as error:
        return _not_ours(error)
    return ""


def _not_ours(error: SchedulerNotServingError) -> str:
    return f"; {error}, and nothing of ours is left that could be the cause: see the log of kube-scheduler"


def _look(node: ControlPlaneNode, endpoint: HealthEndpoint) -> ProbeResult:
    """Returns a probe of the scheduler that serves, or after a while of the one that does not."""
    try:
        return node.waiter.until_serving(endpoint, timeout=min(_LOOKING, node.waiter.timeout))
    except (SchedulerNotServingError, StoppedError):
        return node.waiter.probe(endpoint)


def _our_config(node: ControlPlaneNode, current: File) -> str:
    """Returns the path of the configuration that a kube-scheduler of the edited manifest reads."""
    config = manifest.raw_config(manifest.parse(current.content))
    return config or node.paths.folder


def _endpoint(node: ControlPlaneNode, file: File) -> tuple[HealthEndpoint | None, str]:
    """Returns where the scheduler can be looked at, and why not where it cannot.

    The flags are theirs: what we cannot read in them must not keep us from leaving.
    """
    try:
        endpoint = health_endpoint.find(manifest.parse(file.content), config=_config(node, file))
    except NeedsPersonError as error:
        _LOG.warning("restoring without a look at kube-scheduler: %s", error)
        return None, f"; whether kube-scheduler serves was not checked: {error}"
    return endpoint, "" if endpoint else "; whether kube-scheduler serves was not checked: --secure-port=0"


def _config(node: ControlPlaneNode, file: File) -> bytes | None:
    try:
        source = node.read_config_source(file)
    except NeedsPersonError:
        return None
    return source.content if source else None


@dataclass(frozen=True)
class _Wait:
    """Waiting for the kube-scheduler of a manifest without us."""

    node: ControlPlaneNode
    file: File
    endpoint: HealthEndpoint
    _: KW_ONLY
    before: ProcessIdentity
    may_miss_restart: bool

    def until_restarted(self, was_read: Callable[[], bool] | None) -> None:
        """Waits until it serves steadily.

        ``was_read`` tells whether our configuration was read since, which only a kube-scheduler of the edited
        manifest does; None where that cannot be told.
        """
        waiter = self.node.waiter

        def lasting() -> float:
            return waiter.unproven if was_read is None or was_read() else waiter.proven

        waiter.until_restarted(
            self.endpoint,
            before=self.before,
            lasting=lasting,
            may_miss_restart=self.may_miss_restart,
            check=lambda: self.node.require_manifest(self.file),
        )
