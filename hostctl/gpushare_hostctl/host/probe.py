"""Waiting for kube-scheduler: what one look at it says, and when the looks add up to a new process.

Without ``--tls-cert-file`` kube-scheduler makes a certificate in memory when it starts, so the certificate's
fingerprint tells one process from the next without any access to the API or to the process table.
"""

import hashlib
import http.client
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gpushare_hostctl.decide.endpoint import Endpoint
from gpushare_hostctl.errors import RetryableError

_LOG = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two looks: far less than a restart takes."""

STEADY_LOOKS = 3
"""So many good looks at one process in a row, or it may be one that starts and falls."""

_REQUEST_TIMEOUT = 5.0
# Without the rights to ask, the answer itself shows that a scheduler serves.
_SERVING_STATUS = (200, 401, 403)


class SchedulerNotServingError(RetryableError):
    """kube-scheduler did not serve before the deadline."""


@dataclass(frozen=True)
class Look:
    """One look at kube-scheduler. ``fingerprint`` is None when nothing listens there."""

    serving: bool
    fingerprint: str | None
    detail: str


class Prober(Protocol):
    """Looks at kube-scheduler once; whatever goes wrong is in the Look."""

    def look(self, endpoint: Endpoint) -> Look: ...


class HttpsProber:
    """Asks over HTTPS without credentials: kube-scheduler answers health checks to everyone by default."""

    def look(self, endpoint: Endpoint) -> Look:
        """Ask the endpoint's path; releases before 1.31 have only ``/healthz``."""
        look = _ask(endpoint, endpoint.path)
        return _ask(endpoint, "/healthz") if look.detail == "HTTP 404" else look


def _ask(endpoint: Endpoint, path: str) -> Look:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    # Wrapped before it connects: afterwards a peer that is already gone makes the wrapping lose the socket.
    with _trusting_context().wrap_socket(socket.socket(family)) as connection:
        connection.settimeout(_REQUEST_TIMEOUT)
        try:
            connection.connect((endpoint.host, endpoint.port))
        except OSError as error:
            return Look(serving=False, fingerprint=None, detail=str(error) or type(error).__name__)
        return _answer(connection, endpoint, path)


def _answer(connection: ssl.SSLSocket, endpoint: Endpoint, path: str) -> Look:
    certificate = connection.getpeercert(binary_form=True) or b""
    fingerprint = hashlib.sha256(certificate).hexdigest()
    exchange = http.client.HTTPConnection(endpoint.host, endpoint.port)
    exchange.sock = connection
    try:
        exchange.request("GET", path)
        status = exchange.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return Look(serving=False, fingerprint=fingerprint, detail=str(error) or type(error).__name__)
    return Look(serving=status in _SERVING_STATUS, fingerprint=fingerprint, detail=f"HTTP {status}")


def _trusting_context() -> ssl.SSLContext:
    # The certificate is self-signed, and nothing is sent that a stranger could use.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass
class Steadiness:
    """Adds up looks: true once one process has served STEADY_LOOKS times in a row."""

    fingerprint: str | None = None
    count: int = 0

    def observe(self, look: Look) -> bool:
        """Take the next look into account."""
        same = look.fingerprint == self.fingerprint
        self.count = (self.count + 1 if same else 1) if look.serving else 0
        self.fingerprint = look.fingerprint
        return self.count >= STEADY_LOOKS


@dataclass
class Restart:
    """Adds up looks: true once a process other than ``before`` serves steadily.

    Another process shows by another certificate, or by the endpoint having been closed in between.
    ``settle`` seconds of uninterrupted service count as a restart that was missed; None: never.
    """

    before: str | None
    settle: float | None = None

    def __post_init__(self) -> None:
        self._steadiness = Steadiness()
        self._went_away = False
        self._serving_since: float | None = None

    def observe(self, look: Look, now: float) -> bool:
        """Take the next look, made at ``now`` seconds of a monotonic clock, into account."""
        self._went_away = self._went_away or look.fingerprint is None
        if not look.serving:
            self._serving_since = None
        elif self._serving_since is None:
            self._serving_since = now
        steady = self._steadiness.observe(look)
        return steady and self._is_other(look, now)

    def _is_other(self, look: Look, now: float) -> bool:
        if self._went_away or look.fingerprint != self.before:
            return True
        since = now if self._serving_since is None else self._serving_since
        return self.settle is not None and now - since >= self.settle


@dataclass(frozen=True)
class Waiter:
    """Looks at kube-scheduler again and again. ``clock`` is monotonic and, as ``sleep``, in seconds."""

    prober: Prober
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    timeout: float

    def look(self, endpoint: Endpoint) -> Look:
        """Look once."""
        return self.prober.look(endpoint)

    def until_serving(self, endpoint: Endpoint) -> None:
        """Wait until any process serves steadily. Raises SchedulerNotServingError at the deadline."""
        steadiness = Steadiness()
        self._wait(endpoint, lambda look, _: steadiness.observe(look), wanted="kube-scheduler")

    def until_restarted(self, endpoint: Endpoint, *, before: str | None, settle: bool) -> None:
        """Wait until a process other than ``before`` serves steadily. Raises SchedulerNotServingError.

        With ``settle`` half the time of uninterrupted service is taken for a restart too short to be seen.
        """
        restart = Restart(before=before, settle=self.timeout / 2 if settle else None)
        self._wait(endpoint, restart.observe, wanted="a restarted kube-scheduler")

    def _wait(self, endpoint: Endpoint, done: Callable[[Look, float], bool], *, wanted: str) -> None:
        start = self.clock()
        while True:
            look = self.prober.look(endpoint)
            if done(look, self.clock()):
                _LOG.info("%s serves at %s", wanted, endpoint.url)
                return
            if self.clock() - start >= self.timeout:
                raise SchedulerNotServingError(
                    f"no {wanted.removeprefix('a ')} served at {endpoint.url} within {self.timeout:g} s "
                    f"(last look: {look.detail})"
                )
            self.sleep(INTERVAL)
