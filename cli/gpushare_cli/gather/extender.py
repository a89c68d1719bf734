"""The extender's ledger, from where kube-scheduler asks it: a control-plane node, with its keys."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from gpushare_cli.gather.errors import CannotLookError
from gpushare_core.audit.readers import read_ledger
from gpushare_core.audit.records import LedgerRecord
from gpushare_core.dialects.gpushare import GPUSHARE

KEYS = Path("/etc/kubernetes/gpushare")
CALL_SECONDS = 10.0


def read_extender(url: str, keys: Path = KEYS) -> Mapping[str, LedgerRecord]:
    """Returns node -> book of the extender at ``url`` (https://host:port), as the host whose folder of keys
    is ``keys`` may ask it.

    Raises:
        CannotLookError: it does not answer, or answers what no extender of ours does.
    """
    try:
        context = ssl.create_default_context(cafile=str(keys / "extender" / "authorities.pem"))
        context.load_cert_chain(keys / "keys" / "client.pem")
        address = url.rstrip("/") + GPUSHARE.inspect_path
        with urllib.request.urlopen(address, timeout=CALL_SECONDS, context=context) as answer:  # noqa: S310
            return read_ledger(json.load(answer))
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CannotLookError(
            f"the extender at {url} cannot be asked: {error}; run this as root on a control-plane node whose"
            f" kube-scheduler is connected, where {keys} has the keys"
        ) from error
