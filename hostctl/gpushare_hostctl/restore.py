"""Take our extender out of kube-scheduler and leave the node as it was before us."""

import logging
from dataclasses import replace

from gpushare_hostctl.decide import endpoint, manifest, plan
from gpushare_hostctl.decide.endpoint import Endpoint
from gpushare_hostctl.decide.plan import Snapshot
from gpushare_hostctl.decide.state import File, Pending
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.node import Node, Outcome
from gpushare_hostctl.host.probe import SchedulerNotServingError

_LOG = logging.getLogger(__name__)


def run(node: Node) -> Outcome:
    """Restore, or finish an interrupted restoration.

    Our folder goes last, so that until then running again has all it needs. Raises RetryableError when
    the scheduler does not come back, NeedsPersonError when the manifest cannot be read.
    """
    snapshot = node.snapshot()
    decided = plan.restore(snapshot)
    if decided.manifest is not None:
        _put_back(node, snapshot, decided.manifest)
    else:
        _await_interrupted(node, snapshot)
    node.remove_folder()
    return Outcome(result=decided.result, message=decided.message)


def _put_back(node: Node, snapshot: Snapshot, file: File) -> None:
    found = _endpoint(node, file)
    before = node.waiter.look(found).fingerprint if found else None
    node.make_folder()
    if snapshot.state is not None:
        pending = Pending(sha256=file.sha256, fingerprint=before)
        node.write_state(replace(snapshot.state, pending=pending))
    node.write_manifest(file)
    _LOG.info("restored %s, waiting for kube-scheduler", node.location.manifest)
    _await_restart(node, found, before=before)


def _await_interrupted(node: Node, snapshot: Snapshot) -> None:
    """Wait for the restart that an interrupted run did not see the end of."""
    pending = snapshot.state.pending if snapshot.state else None
    if pending and snapshot.manifest and pending.sha256 == snapshot.manifest.sha256:
        _await_restart(node, _endpoint(node, snapshot.manifest), before=pending.fingerprint)


def _endpoint(node: Node, file: File) -> Endpoint | None:
    try:
        source = node.read_source(file)
    except NeedsPersonError:
        # Theirs to begin with: a configuration that we cannot find must not keep us from leaving.
        source = None
    return endpoint.find(manifest.parse(file.content), config=source.content if source else None)


def _await_restart(node: Node, found: Endpoint | None, *, before: str | None) -> None:
    if found is None:
        return
    try:
        # The kubelet may never have started a scheduler with our edit; then there is no restart to see.
        node.waiter.until_restarted(found, before=before, settle=True)
    except SchedulerNotServingError as error:
        raise RetryableError(
            f"the manifest is as before us, but {error}; run restore again to finish, the backup is in "
            f"{node.location.folder} until then"
        ) from error
