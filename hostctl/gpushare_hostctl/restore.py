"""Takes the extender out of kube-scheduler and leaves the node as it was before us."""

import logging
from dataclasses import replace

from gpushare_hostctl import attempts
from gpushare_hostctl.decide import health_endpoint, manifest, plan
from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.process_identity import UNKNOWN, ProcessIdentity
from gpushare_hostctl.decide.record import PendingRestart
from gpushare_hostctl.decide.snapshot import File, Snapshot
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerNotServingError
from gpushare_hostctl.report import RunResult

_LOG = logging.getLogger(__name__)


def run(node: ControlPlaneNode) -> RunResult:
    """Restores, or finishes an interrupted restoration.

    A manifest that somebody else writes meanwhile is kept, less our part. Our folder goes last, so that until
    then running again has all it needs. Raises RetryableError when the scheduler does not come back,
    NeedsPersonError when the manifest cannot be read.
    """
    return attempts.with_fresh_snapshots(node, lambda _: _attempt(node))


def _attempt(node: ControlPlaneNode) -> RunResult:
    snapshot = node.snapshot()
    restore_plan = plan.restore(snapshot)
    unchecked = ""
    if snapshot.manifest is not None and restore_plan.manifest is not None:
        unchecked = _put_back(node, snapshot, restore_plan.manifest, current=snapshot.manifest)
    else:
        _await_interrupted(node, snapshot)
    if (final := restore_plan.manifest or snapshot.manifest) is not None:
        # It may name our files again: who put an earlier one back puts our edit back.
        node.require_manifest(final)
    left = node.remove_folder()
    unchecked += (
        f"; left in {node.paths.folder}, because it is not ours: {', '.join(left[:5])}" if left else ""
    )
    return RunResult(result=restore_plan.result, message=restore_plan.message + unchecked)


def _put_back(node: ControlPlaneNode, snapshot: Snapshot, file: File, *, current: File) -> str:
    """Puts the manifest in its place. Returns why the scheduler was not looked at then, empty when it was."""
    endpoint, unchecked = _endpoint(node, file)
    before = node.waiter.probe(endpoint).process if endpoint else UNKNOWN
    node.make_folder()
    if snapshot.record is not None:
        node.note_record(replace(snapshot.record, pending=PendingRestart(sha256=file.sha256, before=before)))
    node.write_manifest(file, expected=current)
    _LOG.info("restored %s, waiting for kube-scheduler", node.paths.manifest)
    # Where an edit was interrupted the kubelet may never have seen it; then there is no restart to see.
    interrupted = snapshot.record is None or snapshot.record.pending is not None
    _await_restart(node, file, endpoint, before=before, may_miss_restart=interrupted)
    return unchecked


def _await_interrupted(node: ControlPlaneNode, snapshot: Snapshot) -> None:
    """Waits for the restart that an interrupted run did not see the end of."""
    pending = snapshot.record.pending if snapshot.record else None
    current = snapshot.manifest
    if pending and current and pending.sha256 == current.sha256:
        endpoint, _ = _endpoint(node, current)
        _await_restart(node, current, endpoint, before=pending.before, may_miss_restart=True)


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


def _await_restart(
    node: ControlPlaneNode,
    file: File,
    endpoint: HealthEndpoint | None,
    *,
    before: ProcessIdentity,
    may_miss_restart: bool,
) -> None:
    if endpoint is None:
        return
    try:
        node.waiter.until_restarted(
            endpoint,
            before=before,
            may_miss_restart=may_miss_restart,
            check=lambda: node.require_manifest(file),
        )
    except SchedulerNotServingError as error:
        raise RetryableError(
            f"the manifest is as before us, but {error}; run restore again to finish, the backup is in "
            f"{node.paths.folder} until then"
        ) from error
