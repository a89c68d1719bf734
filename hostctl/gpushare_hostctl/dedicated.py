"""Configuration and keys for kube-scheduler and extender of one pod, in a folder that ends with the pod."""

import logging
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from gpushare_hostctl.decide.scheduler import key_pairs, scheduler_config
from gpushare_hostctl.decide.scheduler.scheduler_config import ClientTls, DedicatedProfile, ExtenderEntry

CONFIGURATION = "kube-scheduler.yaml"
CLIENT = "client.pem"
SERVER = "server.pem"
AUTHORITIES = "authorities.pem"

_LOG = logging.getLogger(__name__)


def run(folder: Path, profile: DedicatedProfile, extender: ExtenderEntry, *, now: datetime) -> None:
    """Writes configuration and keys anew. The authority's key is kept nowhere. Raises OSError."""
    keys = key_pairs.for_pod(now)
    tls = ClientTls(client=str(folder / CLIENT), trusted=str(folder / AUTHORITIES))
    files = {
        AUTHORITIES: keys.trusted_pem,
        SERVER: keys.server.encode(),
        CLIENT: keys.client.encode(),
        CONFIGURATION: scheduler_config.for_dedicated(profile, replace(extender, tls=tls)),
    }
    for name, content in files.items():
        _write(folder / name, content)
    _LOG.info("kube-scheduler and extender of this pod have what they need in %s", folder)


def _write(path: Path, content: bytes) -> None:
    """The container that reads the file runs as the same user."""
    staged = path.with_suffix(".new")
    staged.unlink(missing_ok=True)
    staged.touch(mode=0o600)
    staged.write_bytes(content)
    staged.rename(path)
