"""Connects kube-scheduler to what places pods by cards and waits until it serves again, or rolls back."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpushare_hostctl import attempts
from gpushare_hostctl.decide.run import plan, record
from gpushare_hostctl.decide.run.plan import InstallPlan
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.record import InstallationRecord, PendingRestart
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.run.snapshot import File, HostSnapshot
from gpushare_hostctl.decide.scheduler import health_endpoint, manifest, manifest_edit
from gpushare_hostctl.decide.scheduler.extender_entry import ExtenderEntry
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.scheduler.key_pairs import Keys
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry
from gpushare_hostctl.errors import NeedsPersonError, RetryableError, RolledBackError
from gpushare_hostctl.host.files import FileChangedError
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerNotServingError, StoppedError
from gpushare_hostctl.mutual_tls import MutualTls, await_extender, ensure_keys
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)

_SETTLING = 10.0
"""Seconds for a restart that is under way; a kube-scheduler with our earlier edit may never serve."""

_ONE_LOOK = 2.0
"""Seconds that one probe may take."""


@dataclass(frozen=True)
class _Installation:
    """What one attempt works with."""

    node: ControlPlaneNode
    snapshot: HostSnapshot
    plan: InstallPlan
    endpoint: HealthEndpoint
    engine: EngineEntry
    mutual_tls: MutualTls
    keys: Keys | None
    """Where the extender is called by HTTPS."""
    inputs: str
    """Digest of what the plan was made from."""
    deadline: float
    """By the waiter's clock: until then extender and kube-scheduler have to serve."""

    @property
    def time_left(self) -> float:
        """Seconds until the deadline, at least the few that one probe takes."""
        return max(_ONE_LOOK, self.deadline - self.node.waiter.clock())


def run(
    node: ControlPlaneNode,
    engine: EngineEntry,
    mutual_tls: MutualTls,
    *,
    rolled_back_inputs: str | None = None,
) -> Report:
    """Installs, finishes an interrupted installation, or finds it done.

    For an https extender its keys are made or renewed first. A manifest that somebody else writes meanwhile
    is kept, and edited in its turn. Takes at most three times the waiter's timeout, plus a last probe.

    Raises:
        NeedsPersonError: before anything is edited.
        RolledBackError: the earlier manifest is back; or ``rolled_back_inputs`` are the present ones, so that
            the same was tried before.
        RetryableError: what may pass by itself.
    """

    def attempt(deadline: float) -> Report:
        installation = _prepare(node, engine, mutual_tls, deadline=deadline)
        result = _attempt(installation, rolled_back_inputs)
        renew_after = installation.keys.renew_after if installation.keys else None
        return replace(result, inputs=installation.inputs, renew_after=renew_after)

    return attempts.with_fresh_snapshots(node, attempt)


def _attempt(installation: _Installation, rolled_back_inputs: str | None) -> Report:
    if not plan.changes_manifest(installation.snapshot, installation.plan):
        return _complete(installation)
    if installation.inputs == rolled_back_inputs:
        raise RolledBackError(
            "the edit was not tried again: manifest, configuration and options are those with which it was "
            "rolled back; see kube-scheduler's log of that time, and change one of them, or ask for another"
            " try",
            inputs=installation.inputs,
        )
    return _edit_manifest(installation)


def _prepare(
    node: ControlPlaneNode, engine: EngineEntry, mutual_tls: MutualTls, *, deadline: float
) -> _Installation:
    snapshot = node.snapshot()
    base = plan.base_manifest(snapshot)
    source = node.read_config_source(base)
    keys = ensure_keys(node, mutual_tls) if engine.needs_keys else None
    install_plan = plan.install(snapshot, source=source, engine=engine, keys=keys)
    return _Installation(
        node=node,
        snapshot=snapshot,
        plan=install_plan,
        endpoint=_endpoint(install_plan),
        engine=engine,
        mutual_tls=mutual_tls,
        keys=keys,
        inputs=plan.digest_of_inputs(base, source=source, engine=engine, timeout=node.waiter.timeout),
        deadline=deadline,
    )


def _endpoint(install_plan: InstallPlan) -> HealthEndpoint:
    scheduler = manifest.parse(install_plan.manifest.content)
    endpoint = health_endpoint.find(scheduler, config=install_plan.config.content)
    if endpoint is None:
        raise NeedsPersonError(
            "kube-scheduler serves no HTTPS (--secure-port=0), so nobody can tell whether it works after the "
            "edit; remove that flag, or use another scheduler backend"
        )
    return endpoint


def _edit_manifest(installation: _Installation) -> Report:
    node, snapshot, install_plan = installation.node, installation.snapshot, installation.plan
    if isinstance(installation.engine, ExtenderEntry) and installation.keys is not None:
        url, deadline = installation.engine.url, installation.deadline
        await_extender(node, installation.mutual_tls, url=url, keys=installation.keys, deadline=deadline)
    before = _probe_before(installation)
    current = snapshot.manifest or install_plan.base
    ahead = plan.write_ahead_record(snapshot, install_plan, before=before.process)
    # A kube-scheduler that served with the present manifest will serve with it again.
    fallback = current if before.serving else install_plan.base
    _write_files(installation, ahead)
    node.write_fallback(fallback)
    config = node.paths.in_folder(install_plan.config_name)
    with node.files.watch_reads(config) as was_read:
        node.write_manifest(install_plan.manifest, expected=current)
        _LOG.info("edited %s, waiting for kube-scheduler", node.paths.manifest)
        if manifest.raw_config(manifest.parse(current.content)) == config:
            was_read = None  # a kube-scheduler of the earlier manifest reads it, too
        _await_restart(installation, before=before.process, fallback=fallback, was_read=was_read)
    _finish(installation)
    return Report(result="Installed", message=f"kube-scheduler is back and {installation.engine.effect}")


def _complete(installation: _Installation) -> Report:
    """Completes the files beside a manifest that is as planned, and waits until kube-scheduler serves."""
    installed = plan.is_installed(installation.snapshot, installation.plan)
    pending = _pending_restart(installation)
    if not installed:
        _write_files(installation, replace(installation.plan.record, pending=pending))
    if pending is None:
        installation.node.waiter.until_serving(installation.endpoint)
    else:
        _await_restart(installation, before=pending.before, fallback=installation.plan.base)
    _finish(installation)
    if installed:
        return Report(
            result="AlreadyInstalled", message=f"kube-scheduler {installation.engine.effect} and serves"
        )
    return Report(result="Installed", message="the files beside the manifest are complete again")


def _pending_restart(installation: _Installation) -> PendingRestart | None:
    """Returns a restart whose end an interrupted run did not see."""
    installed = installation.snapshot.record
    pending = installed.pending if installed else None
    return pending if pending and pending.sha256 == installation.plan.manifest.sha256 else None


def _probe_before(installation: _Installation) -> ProbeResult:
    waiter, endpoint = installation.node.waiter, installation.endpoint
    if not _has_our_edit(installation, installation.snapshot.manifest):
        # A kube-scheduler that is down for reasons of its own (an upgrade, say) must not be edited.
        try:
            return waiter.until_serving(endpoint, timeout=installation.time_left)
        except SchedulerNotServingError as error:
            raise RetryableError(f"nothing was changed, because already before: {error}") from error
    try:
        # A restart for an earlier change must not pass for the restart for ours.
        return waiter.until_serving(endpoint, timeout=min(_SETTLING, installation.time_left))
    except SchedulerNotServingError:
        return waiter.prober.probe(endpoint)


def _has_our_edit(installation: _Installation, file: File | None) -> bool:
    folder = installation.node.paths.folder
    return file is not None and manifest_edit.has_our_edit(manifest.parse(file.content), folder=folder)


def _write_files(installation: _Installation, stored: InstallationRecord) -> None:
    # The record comes last: the backup and the configuration that it names are there by then.
    node = installation.node
    node.make_folder()
    node.write_copy(installation.plan.backup_name, installation.plan.base)
    node.write_key_files(installation.plan.key_files)
    node.write_in_folder(installation.plan.config_name, installation.plan.config)
    node.write_record(stored)


def _await_restart(
    installation: _Installation,
    *,
    before: ProcessIdentity,
    fallback: File,
    was_read: Callable[[], bool] | None = None,
) -> None:
    """Waits for the kube-scheduler of the edited manifest, or rolls back.

    Nobody else reads the configuration: as long as it was not read, whoever serves was started from the
    earlier manifest. ``was_read``: None where that is unknown.
    """
    node = installation.node

    def lasting() -> float:
        if was_read is None:
            return node.waiter.unproven
        return node.waiter.proven if was_read() else math.inf

    try:
        node.waiter.until_restarted(
            installation.endpoint,
            before=before,
            lasting=lasting,
            check=lambda: node.require_manifest(installation.plan.manifest),
        )
    except SchedulerNotServingError as error:
        _roll_back(installation, fallback, cause=error)
    except StoppedError as error:
        _step_back(installation, fallback, cause=error)


def _step_back(installation: _Installation, fallback: File, *, cause: StoppedError) -> None:
    """Puts the earlier manifest back without waiting: a program that is ended has only seconds left.

    Always raises RetryableError. Our folder stays as it is, for the next run.
    """
    try:
        installation.node.write_manifest(fallback, expected=installation.plan.manifest)
    except FileChangedError as error:
        raise RetryableError(f"{cause}; {error} and was left so") from error
    raise RetryableError(f"{cause}; the earlier manifest is back, run again") from cause


def _roll_back(installation: _Installation, fallback: File, *, cause: SchedulerNotServingError) -> None:
    """Puts the earlier manifest back and reports why. Always raises RolledBackError.

    Raises FileChangedError instead when somebody else has replaced ours.
    """
    node = installation.node
    _LOG.error("rolling back: %s", cause)
    node.write_manifest(fallback, expected=installation.plan.manifest)
    tried = f"with {installation.engine} {cause}; the earlier manifest is back"
    try:
        node.waiter.until_serving(installation.endpoint, lasting=node.waiter.proven)
    except (SchedulerNotServingError, StoppedError) as error:
        raise RolledBackError(f"{tried}, and still {error}", inputs=installation.inputs) from error
    _reset_folder(installation, fallback)
    message = f"{tried} and kube-scheduler serves again"
    raise RolledBackError(message, inputs=installation.inputs) from cause


def _reset_folder(installation: _Installation, fallback: File) -> None:
    """Leaves in our folder what belongs to the manifest that is back."""
    earlier = installation.snapshot.record
    if not _has_our_edit(installation, fallback):
        installation.node.clear_folder()
    elif earlier is not None:
        installation.node.note_record(earlier)
        names = (record.FILE_NAME, earlier.backup, earlier.config)
        installation.node.keep_only(names, key_files=installation.snapshot.key_files)


def _finish(installation: _Installation) -> None:
    node, install_plan = installation.node, installation.plan
    node.require_manifest(install_plan.manifest)
    if installation.snapshot.record != install_plan.record:
        node.write_record(install_plan.record)
    names = (record.FILE_NAME, install_plan.backup_name, install_plan.config_name)
    node.keep_only(names, key_files=install_plan.key_files)
    if not isinstance(installation.engine, ExtenderEntry):
        # Its kube-scheduler called the extender of this host, and nobody else does.
        node.remove_keys()
