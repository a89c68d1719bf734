"""Takes the extender out of kube-scheduler and leaves the node as it was before us."""

import logging
from dataclasses import replace

from gpushare_hostctl.decide import health_endpoint, manifest, plan
from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.record import PendingRestart
from gpushare_hostctl.decide.snapshot import File, Snapshot
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerNotServingError
from gpushare_hostctl.report import RunResult

_LOG = logging.getLogger(__name__)


def run(node: ControlPlaneNode) -> RunResult:
    """Restores, or finishes an interrupted restoration.

    Our folder goes last, so that until then running again has all it needs. Raises RetryableError when
    the scheduler does not come back, NeedsPersonError when the manifest cannot be read.
    """
    snapshot = node.snapshot()
    restore_plan = plan.restore(snapshot)
    if restore_plan.manifest is not None:
        _put_back(node, snapshot, restore_plan.manifest)
    else:
        _await_interrupted(node, snapshot)
    node.remove_folder()
    return RunResult(result=restore_plan.result, message=restore_plan.message)


def _put_back(node: ControlPlaneNode, snapshot: Snapshot, file: File) -> None:
    endpoint = _endpoint(node, file)
    before = node.waiter.probe(endpoint).fingerprint if endpoint else None
    node.make_folder()
    if snapshot.record is not None:
        pending = PendingRestart(sha256=file.sha256, fingerprint=before)
        node.write_record(replace(snapshot.record, pending=pending))
    node.write_manifest(file)
    _LOG.info("restored %s, waiting for kube-scheduler", node.paths.manifest)
    _await_restart(node, endpoint, before=before)


def _await_interrupted(node: ControlPlaneNode, snapshot: Snapshot) -> None:
    """Waits for the restart that an interrupted run did not see the end of."""
    pending = snapshot.record.pending if snapshot.record else None
    if pending and snapshot.manifest and pending.sha256 == snapshot.manifest.sha256:
        _await_restart(node, _endpoint(node, snapshot.manifest), before=pending.fingerprint)


def _endpoint(node: ControlPlaneNode, file: File) -> HealthEndpoint | None:
    try:
        source = node.read_config_source(file)
    except NeedsPersonError:
        # Theirs to begin with: a configuration that we cannot find must not keep us from leaving.
        source = None
    return health_endpoint.find(manifest.parse(file.content), config=source.content if source else None)


def _await_restart(node: ControlPlaneNode, endpoint: HealthEndpoint | None, *, before: str | None) -> None:
    if endpoint is None:
        return
    try:
        # The kubelet may never have started a scheduler with our edit; then there is no restart to see.
        node.waiter.until_restarted(endpoint, before=before, may_miss_restart=True)
    except SchedulerNotServingError as error:
        raise RetryableError(
            f"the manifest is as before us, but {error}; run restore again to finish, the backup is in "
            f"{node.paths.folder} until then"
        ) from error
