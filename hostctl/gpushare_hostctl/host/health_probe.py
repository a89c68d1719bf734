"""One probe of kube-scheduler over HTTPS."""

import hashlib
import http.client
import socket
import ssl
from typing import Protocol

from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.restart_detector import ProbeResult

_TIMEOUT = 5.0
"""Seconds for each step of a probe: connecting, the handshake, the answer."""

# Without the rights to ask, the answer itself shows that a scheduler serves.
_SERVING_STATUS = (200, 401, 403)


class Prober(Protocol):
    """Probes kube-scheduler once; whatever goes wrong is in the result."""

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult: ...


class HttpsProber:
    """Asks over HTTPS without credentials: kube-scheduler answers health checks to everyone by default."""

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:
        """Returns what the endpoint's path answers; releases before 1.31 have only ``/healthz``."""
        result = _probe_path(endpoint, endpoint.path)
        return _probe_path(endpoint, "/healthz") if result.detail == "HTTP 404" else result


def _probe_path(endpoint: HealthEndpoint, path: str) -> ProbeResult:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    # Wrapped before it connects: afterwards a peer that is already gone makes the wrapping lose the socket.
    with _trusting_context().wrap_socket(socket.socket(family)) as connection:
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect((endpoint.host, endpoint.port))
        except OSError as error:
            return ProbeResult(serving=False, fingerprint=None, detail=str(error) or type(error).__name__)
        return _request(connection, endpoint, path)


def _request(connection: ssl.SSLSocket, endpoint: HealthEndpoint, path: str) -> ProbeResult:
    certificate = connection.getpeercert(binary_form=True) or b""
    fingerprint = hashlib.sha256(certificate).hexdigest()
    exchange = http.client.HTTPConnection(endpoint.host, endpoint.port)
    exchange.sock = connection
    try:
        exchange.request("GET", path)
        status = exchange.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return ProbeResult(serving=False, fingerprint=fingerprint, detail=str(error) or type(error).__name__)
    return ProbeResult(serving=status in _SERVING_STATUS, fingerprint=fingerprint, detail=f"HTTP {status}")


def _trusting_context() -> ssl.SSLContext:
    # The certificate is self-signed, and nothing is sent that a stranger could use.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
