"""The extender's ledger, read with the keys of kube-scheduler on a control-plane node."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from gpushare_cli.errors import CannotLookError
from gpushare_core.audit.readers import read_ledger
from gpushare_core.audit.records import LedgerRecord
from gpushare_core.dialects.gpushare import GPUSHARE

CALL_SECONDS = 10.0


def read_extender(url: str, keys: Path) -> Mapping[str, LedgerRecord]:
    """Returns node -> what the extender at ``url`` (https://host:port) has of it. ``keys``: the host's folder
    of keys."""
    try:
        context = ssl.create_default_context(cafile=str(keys / "extender" / "authorities.pem"))
        context.load_cert_chain(keys / "keys" / "client.pem")
        address = url.rstrip("/") + GPUSHARE.inspect_path
        with urllib.request.urlopen(address, timeout=CALL_SECONDS, context=context) as response:  # noqa: S310
            return read_ledger(json.load(response))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CannotLookError(
            f"the extender at {url} cannot be asked: {error}; run this as root on a control-plane node whose"
            f" kube-scheduler is connected, where {keys} has the keys"
        ) from error
