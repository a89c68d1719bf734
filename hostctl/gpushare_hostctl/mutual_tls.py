"""The keys of mutual TLS on the host: makes and renews them, waits for an extender that uses them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from gpushare_hostctl.decide.run.snapshot import File
from gpushare_hostctl.decide.scheduler import key_pairs
from gpushare_hostctl.decide.scheduler.key_pairs import Keys
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host.extender_probe import ExtenderProbe, ExtenderProber
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import INTERVAL, StoppedError
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)

_EXTENDER_FOLDER = "extender"
"""What the extender's pod mounts; it lies in our folder, which is closed to everyone but root."""


@dataclass(frozen=True)
class MutualTls:
    now: Callable[[], datetime]
    group: int
    """It may read the extender's keys."""
    prober: ExtenderProber


def run(node: ControlPlaneNode, mutual_tls: MutualTls) -> Report:
    """Raises NeedsPersonError when the keys cannot be given to the group."""
    before = node.read_keys()
    keys = ensure_keys(node, mutual_tls)
    if before == node.read_keys():
        return Report("KeysPresent", "the keys are good", renew_after=keys.renew_after)
    return Report("KeysMade", "the keys were made or renewed", renew_after=keys.renew_after)


def ensure_keys(node: ControlPlaneNode, mutual_tls: MutualTls) -> Keys:
    """Returns the host's keys after making those that are missing or near their end, and mending owners and
    modes. Raises NeedsPersonError when they cannot be given to the group."""
    stored = node.read_keys()
    keys = key_pairs.renew({path: file.content for path, file in stored.items()}, mutual_tls.now())
    for path, content in keys.files().items():
        _ensure(node, path, content, stored.get(path), group=mutual_tls.group)
    return keys


def await_extender(
    node: ControlPlaneNode, mutual_tls: MutualTls, *, url: str, keys: Keys, deadline: float
) -> None:
    """Waits until the extender at ``url`` serves with these keys, before kube-scheduler is sent there.

    ``deadline``: by the waiter's clock. Raises RetryableError when the extender does not serve in time,
    NeedsPersonError when something else answers there.
    """
    waiter = node.waiter
    while (probe := mutual_tls.prober.probe(url, keys)).answer != "ready":
        if waiter.is_stopped():
            raise StoppedError("stopped from outside while waiting for the extender; nothing was edited")
        if waiter.clock() >= deadline:
            raise _not_ready(url, probe)
        waiter.sleep(INTERVAL)


def _not_ready(url: str, probe: ExtenderProbe) -> RetryableError | NeedsPersonError:
    if probe.answer == "stranger":
        return NeedsPersonError(
            f"kube-scheduler was not edited, because the program at {url} does not know the keys made on "
            f"this host ({probe.detail}): if another program took port {urlsplit(url).port}, free it or "
            "choose another port; if an extender with earlier keys runs there, restart its pod"
        )
    return RetryableError(
        f"kube-scheduler was not edited, because no extender is ready at {url} ({probe.detail}); see its pod "
        "on this node, and restart it if it does not know the keys made on this host"
    )


def _ensure(node: ControlPlaneNode, path: str, content: bytes, stored: File | None, *, group: int) -> None:
    folder = str(PurePosixPath(path).parent)
    shared = folder == _EXTENDER_FOLDER
    mode, gid = (0o640, group) if shared else (0o600, 0)
    file = File(content=content, mode=mode, uid=0, gid=gid)
    try:
        node.make_folder()
        node.make_folder(folder, mode=0o750 if shared else 0o700, gid=gid)
        if shared:
            node.files.share_with_containers(node.paths.in_folder(folder))
        if file != stored:
            _LOG.info("writing %s", node.paths.in_folder(path))
            node.write_in_folder(path, file)
    except PermissionError as error:
        raise NeedsPersonError(
            f"cannot give {node.paths.in_folder(path)} to root and group {gid}: run as root and a member of "
            "that group (supplementalGroups of the pod)"
        ) from error
