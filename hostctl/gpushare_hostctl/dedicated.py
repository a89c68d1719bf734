"""What kube-scheduler, and extender, of one pod need, in a folder that ends with the pod."""

import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpushare_hostctl.decide.scheduler import key_pairs, scheduler_config
from gpushare_hostctl.decide.scheduler.extender_entry import ClientTls
from gpushare_hostctl.decide.scheduler.plugin_entry import PluginEntry
from gpushare_hostctl.decide.scheduler.scheduler_config import DedicatedProfile, EngineEntry

CONFIGURATION = "kube-scheduler.yaml"
CLIENT = "client.pem"
SERVER = "server.pem"
AUTHORITIES = "authorities.pem"

_LOG = logging.getLogger(__name__)


def run(folder: Path, profile: DedicatedProfile, engine: EngineEntry, *, now: datetime) -> None:
    """Writes the configuration anew, and for an extender the keys. The authority's key is kept nowhere.

    Raises OSError.
    """
    for name, content in _files(folder, profile, engine, now).items():
        _write(folder / name, content)
    _LOG.info("kube-scheduler of this pod has what it needs in %s", folder)


def _files(folder: Path, profile: DedicatedProfile, engine: EngineEntry, now: datetime) -> dict[str, bytes]:
    if isinstance(engine, PluginEntry):
        return {CONFIGURATION: scheduler_config.for_dedicated(profile, engine)}
    keys = key_pairs.for_pod(now)
    tls = ClientTls(client=str(folder / CLIENT), trusted=str(folder / AUTHORITIES))
    return {
        AUTHORITIES: keys.trusted_pem,
        SERVER: keys.server.encode(),
        CLIENT: keys.client.encode(),
        CONFIGURATION: scheduler_config.for_dedicated(profile, replace(engine, tls=tls)),
    }


def _write(path: Path, content: bytes) -> None:
    """The container that reads the file runs as the same user."""
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    staged.touch(mode=0o600)
    staged.write_bytes(content)
    staged.rename(path)
