"""Put our extender into kube-scheduler, wait until it serves again, or go back by itself."""

import logging
from dataclasses import dataclass, replace

from gpushare_hostctl.decide import endpoint, manifest, plan, state
from gpushare_hostctl.decide.configuration import Extender
from gpushare_hostctl.decide.endpoint import Endpoint
from gpushare_hostctl.decide.plan import InstallPlan, Snapshot
from gpushare_hostctl.decide.state import File, Pending
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import Node, Outcome
from gpushare_hostctl.host.probe import Look, SchedulerNotServingError

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Change:
    """What one run works with."""

    node: Node
    snapshot: Snapshot
    plan: InstallPlan
    endpoint: Endpoint


def run(node: Node, extender: Extender) -> Outcome:
    """Install, finish an interrupted installation, or find it done.

    Raises NeedsPersonError before anything is written, RetryableError after the manifest of before is back.
    """
    change = _prepare(node, extender)
    if plan.is_edit(change.snapshot, change.plan):
        return _edit(change)
    return _complete(change)


def _prepare(node: Node, extender: Extender) -> _Change:
    snapshot = node.snapshot()
    source = node.read_source(plan.base_manifest(snapshot))
    decided = plan.install(snapshot, source=source, extender=extender)
    scheduler = manifest.parse(decided.manifest.content)
    found = endpoint.find(scheduler, config=decided.config.content)
    if found is None:
        raise NeedsPersonError(
            "kube-scheduler serves no HTTPS (--secure-port=0), so nobody can tell whether it works after the "
            "edit; take that flag away, or use another scheduler backend"
        )
    return _Change(node=node, snapshot=snapshot, plan=decided, endpoint=found)


def _edit(change: _Change) -> Outcome:
    before = _look_before(change)
    _write_files(change, plan.write_ahead(change.snapshot, change.plan, fingerprint=before.fingerprint))
    change.node.write_manifest(change.plan.manifest)
    _LOG.info("edited %s, waiting for kube-scheduler", change.node.location.manifest)
    # What served with the manifest of before this run will serve with it again.
    fallback = change.snapshot.manifest if before.serving and change.snapshot.manifest else change.plan.base
    _await_restart(change, fingerprint=before.fingerprint, fallback=fallback)
    _finish(change)
    return Outcome(result="Installed", message="kube-scheduler is back and asks the extender")


def _complete(change: _Change) -> Outcome:
    """The manifest is as it should be: complete the files beside it and see that the scheduler serves."""
    installed = plan.is_installed(change.snapshot, change.plan)
    pending = _pending(change)
    if not installed:
        _write_files(change, replace(change.plan.state, pending=pending))
    if pending is None:
        change.node.waiter.until_serving(change.endpoint)
    else:
        _await_restart(change, fingerprint=pending.fingerprint, fallback=change.plan.base)
    _finish(change)
    if installed:
        return Outcome(result="AlreadyInstalled", message="kube-scheduler asks the extender and serves")
    return Outcome(result="Installed", message="the files beside the manifest are complete again")


def _pending(change: _Change) -> Pending | None:
    """Give the restart that an interrupted run did not see the end of."""
    known = change.snapshot.state
    pending = known.pending if known else None
    return pending if pending and pending.sha256 == change.plan.manifest.sha256 else None


def _look_before(change: _Change) -> Look:
    waiter = change.node.waiter
    if not _carries(change, change.snapshot.manifest):
        # A scheduler that is down for reasons of its own (an upgrade, say) is no scheduler to edit.
        try:
            waiter.until_serving(change.endpoint)
        except SchedulerNotServingError as error:
            raise RetryableError(f"nothing was changed, because already before: {error}") from error
    return waiter.look(change.endpoint)


def _carries(change: _Change, file: File | None) -> bool:
    return file is not None and manifest.carries(
        manifest.parse(file.content), folder=change.node.location.folder
    )


def _write_files(change: _Change, stored: state.State) -> None:
    # The record comes last: with it the backup and the configuration it names are there.
    node = change.node
    node.make_folder()
    node.write_own(change.plan.backup_name, change.plan.base)
    node.write_own(change.plan.config_name, change.plan.config)
    node.write_state(stored)


def _await_restart(change: _Change, *, fingerprint: str | None, fallback: File) -> None:
    try:
        change.node.waiter.until_restarted(
            change.endpoint, before=fingerprint, settle=change.endpoint.lasting_certificate
        )
    except SchedulerNotServingError as error:
        _roll_back(change, fallback, cause=error)


def _roll_back(change: _Change, fallback: File, *, cause: SchedulerNotServingError) -> None:
    """Put the earlier manifest back and report why. Always raises RetryableError."""
    node = change.node
    _LOG.error("rolling back: %s", cause)
    node.write_manifest(fallback)
    try:
        node.waiter.until_serving(change.endpoint)
    except SchedulerNotServingError as error:
        raise RetryableError(f"{cause}; the earlier manifest is back, and still {error}") from error
    _forget(change, fallback)
    raise RetryableError(f"{cause}; the earlier manifest is back and kube-scheduler serves again") from cause


def _forget(change: _Change, fallback: File) -> None:
    """Leave our folder as it belongs to the manifest that is back."""
    known = change.snapshot.state
    if not _carries(change, fallback):
        change.node.remove_folder()
    elif known is not None:
        change.node.write_state(known)
        change.node.keep_only((state.NAME, known.backup, known.config))


def _finish(change: _Change) -> None:
    if change.snapshot.state != change.plan.state:
        change.node.write_state(change.plan.state)
    change.node.keep_only((state.NAME, change.plan.backup_name, change.plan.config_name))
