"""One probe of kube-scheduler over HTTPS."""

import hashlib
import http.client
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from gpushare_hostctl.decide.run.process_identity import ProcessIdentity, listening_sockets
from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint

_TIMEOUT = 5.0
"""Seconds of one step of a probe: connecting, the handshake, the answer."""

# A refusal for lack of rights shows that kube-scheduler serves, too.
_SERVING_STATUS = (200, 401, 403)


class Prober(Protocol):
    """Whatever goes wrong is in the result."""

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult: ...


class HttpsProber:
    """Without credentials: by default kube-scheduler answers health checks of everyone."""

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:
        """Releases before 1.31 have only ``/healthz``."""
        sockets = _sockets(endpoint)
        result = _probe_path(endpoint, endpoint.path)
        if result.detail == "HTTP 404":
            result = _probe_path(endpoint, "/healthz")
        if _sockets(endpoint) != sockets:
            return ProbeResult(serving=False, detail="another process began to listen meanwhile")
        return replace(result, process=replace(result.process, sockets=_seen(sockets, result)))


def _seen(sockets: tuple[int, ...] | None, result: ProbeResult) -> tuple[int, ...] | None:
    if result.refused:
        return sockets or ()
    # Who answers is not in the table: it may be in another network namespace.
    return sockets or None


def _sockets(endpoint: HealthEndpoint) -> tuple[int, ...] | None:
    try:
        tables = [_read_table(name) for name in ("tcp", "tcp6")]
    except OSError:
        return None
    return listening_sockets(tables, host=endpoint.host, port=endpoint.port)


def _read_table(name: str) -> str:
    table = Path("/proc/self/net") / name
    # Without IPv6 in the kernel there is no tcp6.
    return table.read_text() if name == "tcp" or table.exists() else ""


def _probe_path(endpoint: HealthEndpoint, path: str) -> ProbeResult:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    # Wrapped before it connects: later, wrapping loses the socket of a peer that is already gone.
    with _trusting_context().wrap_socket(socket.socket(family)) as connection:
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect((endpoint.host, endpoint.port))
        except OSError as error:
            return _failed(error, refused=isinstance(error, ConnectionRefusedError))
        return _request(connection, endpoint, path)


def _request(connection: ssl.SSLSocket, endpoint: HealthEndpoint, path: str) -> ProbeResult:
    certificate = connection.getpeercert(binary_form=True) or b""
    process = ProcessIdentity(certificate=hashlib.sha256(certificate).hexdigest())
    exchange = http.client.HTTPConnection(endpoint.host, endpoint.port)
    exchange.sock = connection
    try:
        exchange.request("GET", path)
        status = exchange.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return replace(_failed(error), process=process)
    return ProbeResult(serving=status in _SERVING_STATUS, detail=f"HTTP {status}", process=process)


def _failed(error: Exception, *, refused: bool = False) -> ProbeResult:
    return ProbeResult(serving=False, detail=str(error) or type(error).__name__, refused=refused)


def _trusting_context() -> ssl.SSLContext:
    # The certificate is self-signed, and nothing secret is sent.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
