"""Puts the extender into kube-scheduler, waits until it serves again, or goes back by itself."""

import logging
from dataclasses import dataclass, replace

from gpushare_hostctl.decide import health_endpoint, manifest, plan, record
from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.plan import InstallPlan
from gpushare_hostctl.decide.record import InstallationRecord, PendingRestart
from gpushare_hostctl.decide.restart_detector import ProbeResult
from gpushare_hostctl.decide.scheduler_config import ExtenderEntry
from gpushare_hostctl.decide.snapshot import File, Snapshot
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerNotServingError
from gpushare_hostctl.report import RunResult

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Installation:
    """What one run works with."""

    node: ControlPlaneNode
    snapshot: Snapshot
    plan: InstallPlan
    endpoint: HealthEndpoint


def run(node: ControlPlaneNode, extender: ExtenderEntry) -> RunResult:
    """Installs, finishes an interrupted installation, or finds it done.

    Raises NeedsPersonError before anything is written, RetryableError after the manifest of before is back.
    """
    installation = _prepare(node, extender)
    if plan.changes_manifest(installation.snapshot, installation.plan):
        return _edit_manifest(installation)
    return _complete(installation)


def _prepare(node: ControlPlaneNode, extender: ExtenderEntry) -> _Installation:
    snapshot = node.snapshot()
    source = node.read_config_source(plan.base_manifest(snapshot))
    install_plan = plan.install(snapshot, source=source, extender=extender)
    scheduler = manifest.parse(install_plan.manifest.content)
    endpoint = health_endpoint.find(scheduler, config=install_plan.config.content)
    if endpoint is None:
        raise NeedsPersonError(
            "kube-scheduler serves no HTTPS (--secure-port=0), so nobody can tell whether it works after the "
            "edit; take that flag away, or use another scheduler backend"
        )
    return _Installation(node=node, snapshot=snapshot, plan=install_plan, endpoint=endpoint)


def _edit_manifest(installation: _Installation) -> RunResult:
    node, snapshot, install_plan = installation.node, installation.snapshot, installation.plan
    before = _probe_before(installation)
    ahead = plan.write_ahead_record(snapshot, install_plan, fingerprint=before.fingerprint)
    _write_files(installation, ahead)
    node.write_manifest(install_plan.manifest)
    _LOG.info("edited %s, waiting for kube-scheduler", node.paths.manifest)
    # What served with the manifest of before this run will serve with it again.
    fallback = snapshot.manifest if before.serving and snapshot.manifest else install_plan.base
    _await_restart(installation, fingerprint=before.fingerprint, fallback=fallback)
    _finish(installation)
    return RunResult(result="Installed", message="kube-scheduler is back and asks the extender")


def _complete(installation: _Installation) -> RunResult:
    """The manifest is as it should be: completes the files beside it and sees that the scheduler serves."""
    installed = plan.is_installed(installation.snapshot, installation.plan)
    pending = _pending_restart(installation)
    if not installed:
        _write_files(installation, replace(installation.plan.record, pending=pending))
    if pending is None:
        installation.node.waiter.until_serving(installation.endpoint)
    else:
        _await_restart(installation, fingerprint=pending.fingerprint, fallback=installation.plan.base)
    _finish(installation)
    if installed:
        return RunResult(result="AlreadyInstalled", message="kube-scheduler asks the extender and serves")
    return RunResult(result="Installed", message="the files beside the manifest are complete again")


def _pending_restart(installation: _Installation) -> PendingRestart | None:
    """Returns the restart that an interrupted run did not see the end of, None when there is none."""
    installed = installation.snapshot.record
    pending = installed.pending if installed else None
    return pending if pending and pending.sha256 == installation.plan.manifest.sha256 else None


def _probe_before(installation: _Installation) -> ProbeResult:
    waiter = installation.node.waiter
    if not _has_our_edit(installation, installation.snapshot.manifest):
        # A scheduler that is down for reasons of its own (an upgrade, say) is no scheduler to edit.
        try:
            waiter.until_serving(installation.endpoint)
        except SchedulerNotServingError as error:
            raise RetryableError(f"nothing was changed, because already before: {error}") from error
    return waiter.probe(installation.endpoint)


def _has_our_edit(installation: _Installation, file: File | None) -> bool:
    folder = installation.node.paths.folder
    return file is not None and manifest.has_our_edit(manifest.parse(file.content), folder=folder)


def _write_files(installation: _Installation, stored: InstallationRecord) -> None:
    # The record comes last: with it the backup and the configuration it names are there.
    node = installation.node
    node.make_folder()
    node.write_in_folder(installation.plan.backup_name, installation.plan.base)
    node.write_in_folder(installation.plan.config_name, installation.plan.config)
    node.write_record(stored)


def _await_restart(installation: _Installation, *, fingerprint: str | None, fallback: File) -> None:
    endpoint = installation.endpoint
    try:
        installation.node.waiter.until_restarted(
            endpoint, before=fingerprint, may_miss_restart=endpoint.lasting_certificate
        )
    except SchedulerNotServingError as error:
        _roll_back(installation, fallback, cause=error)


def _roll_back(installation: _Installation, fallback: File, *, cause: SchedulerNotServingError) -> None:
    """Puts the earlier manifest back and reports why. Always raises RetryableError."""
    node = installation.node
    _LOG.error("rolling back: %s", cause)
    node.write_manifest(fallback)
    try:
        node.waiter.until_serving(installation.endpoint)
    except SchedulerNotServingError as error:
        raise RetryableError(f"{cause}; the earlier manifest is back, and still {error}") from error
    _reset_folder(installation, fallback)
    raise RetryableError(f"{cause}; the earlier manifest is back and kube-scheduler serves again") from cause


def _reset_folder(installation: _Installation, fallback: File) -> None:
    """Leaves our folder as it belongs to the manifest that is back."""
    earlier = installation.snapshot.record
    if not _has_our_edit(installation, fallback):
        installation.node.remove_folder()
    elif earlier is not None:
        installation.node.write_record(earlier)
        installation.node.keep_only((record.FILE_NAME, earlier.backup, earlier.config))


def _finish(installation: _Installation) -> None:
    node, install_plan = installation.node, installation.plan
    if installation.snapshot.record != install_plan.record:
        node.write_record(install_plan.record)
    node.keep_only((record.FILE_NAME, install_plan.backup_name, install_plan.config_name))
