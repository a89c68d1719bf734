"""One look at the extender, the way kube-scheduler will call it."""

import contextlib
import http.client
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import urlsplit

from gpushare_hostctl.decide.scheduler.key_pairs import Keys

_TIMEOUT = 5.0
"""Seconds for each step."""

_NO_TLS = "WRONG_VERSION_NUMBER"
"""Reason by which OpenSSL says that the answer was no TLS."""

Answer = Literal["ready", "unready", "nobody", "stranger"]


@dataclass(frozen=True)
class ExtenderProbe:
    """What answers at the extender's address.

    ``unready``: the extender, which has shown its certificate but does not serve us yet; ``nobody``: no
    answer that tells who it is; ``stranger``: something with another certificate, or without TLS. ``detail``
    is the answer or the error, for people.
    """

    answer: Answer
    detail: str


class ExtenderProber(Protocol):
    """Looks at the extender once; whatever goes wrong is in the result."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe: ...


class HttpsExtenderProber:
    """Asks the extender's ``/readyz`` with the certificate of kube-scheduler."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe:
        """Returns who answers at ``url``, an https one."""
        parts = urlsplit(url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=_TIMEOUT, context=_context(keys)
        )
        try:
            return _connect(connection) or _ask(connection)
        finally:
            connection.close()


def _connect(connection: http.client.HTTPSConnection) -> ExtenderProbe | None:
    """Connects. Returns None when the extender has shown its certificate."""
    try:
        connection.connect()
    except ssl.SSLError as error:
        # A connection that breaks, or an alert, comes as well from an extender that starts.
        is_stranger = isinstance(error, ssl.SSLCertVerificationError) or error.reason == _NO_TLS
        return ExtenderProbe("stranger" if is_stranger else "nobody", str(error))
    except OSError as error:
        return ExtenderProbe("nobody", str(error) or type(error).__name__)
    return None


def _ask(connection: http.client.HTTPSConnection) -> ExtenderProbe:
    try:
        connection.request("GET", "/readyz")
        return _judge(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        # With TLS 1.3 it says only now that it does not know our certificate: it has not loaded the keys yet.
        return ExtenderProbe("unready", str(error) or type(error).__name__)


def _judge(status: int) -> ExtenderProbe:
    return ExtenderProbe("ready" if status == http.client.OK else "unready", f"HTTP {status}")


def _context(keys: Keys) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=keys.trusted_pem.decode())
    with _file_in_memory(keys.client.encode()) as path:
        context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    """Lends a path to content that must not lie on a disk, because ssl takes no other."""
    descriptor = os.memfd_create("client.pem")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
