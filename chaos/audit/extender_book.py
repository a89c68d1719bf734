"""The extender's ledger, asked from inside the network of its node with kube-scheduler's own key."""

import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from bench.readings.node_network import inside_network

from chaos.plan.known import CONTROL_PLANES
from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.audit.readers import read_ledger
from gpushare_core.audit.records import LedgerRecord
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError

PATH = "/gpushare/inspect"
KEYS = "/etc/kubernetes/gpushare"
TIMEOUT = 3.0


def read_extenders(cluster: LocalCluster) -> dict[str, Mapping[str, LedgerRecord]]:
    """Returns control plane -> ledger of its extender, by node; extenders that do not respond are left out.
    All ledgers have to be right, because any extender may be asked next."""
    found = dict[str, Mapping[str, LedgerRecord]]()
    for control_plane in CONTROL_PLANES:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, LocalClusterError):
            found[control_plane] = read_ledger(_ask(cluster, control_plane))
    return found


def _ask(cluster: LocalCluster, node: str) -> dict[str, object]:
    """Raises ``OSError``, ``HTTPException``, ``ValueError`` or ``LocalClusterError``."""
    connection = http.client.HTTPConnection("127.0.0.1", EXTENDER_PORT, timeout=TIMEOUT)
    tls = _tls(cluster.node_path(node, KEYS))
    with inside_network(cluster.node_pid(node)):
        plain = socket.create_connection(("127.0.0.1", EXTENDER_PORT), timeout=TIMEOUT)
    with plain, encrypted(plain, tls) as connection.sock:
        connection.request("GET", PATH)
        answer: dict[str, object] = json.loads(connection.getresponse().read())
        return answer


def encrypted(plain: socket.socket, tls: ssl.SSLContext) -> ssl.SSLSocket:
    """Raises ``OSError``. Where the connection was reset already, such as by an extender that is killed,
    ``wrap_socket`` raises from a socket of its own that nobody can close: ``SSLSocket._create`` of CPython
    3.11."""
    plain.getpeername()
    return tls.wrap_socket(plain, server_hostname="127.0.0.1")


def _tls(folder: Path) -> ssl.SSLContext:
    """Raises ``OSError`` where the keys are not there (yet)."""
    context = ssl.create_default_context(cafile=str(folder / "extender" / "authorities.pem"))
    context.load_cert_chain(folder / "keys" / "client.pem")
    context.check_hostname = False
    return context
