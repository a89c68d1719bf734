"""One call of the extender, as kube-scheduler will call it."""

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
"""Seconds of one step."""

_NO_TLS = "WRONG_VERSION_NUMBER"
"""OpenSSL's reason where the answer is no TLS."""

Answer = Literal["ready", "unready", "nobody", "stranger"]


@dataclass(frozen=True)
class ExtenderProbe:
    """What answers at the extender's address.

    - ``unready``: the extender, by its certificate, which does not serve us yet;
    - ``nobody``: no answer that shows who it is;
    - ``stranger``: something with another certificate, or without TLS.
    """

    answer: Answer
    detail: str
    """The answer or the error, for people."""


class ExtenderProber(Protocol):
    """Whatever goes wrong is in the result."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe: ...


class HttpsExtenderProber:
    """Gets ``/readyz`` with kube-scheduler's certificate."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe:
        parts = urlsplit(url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=_TIMEOUT, context=_context(keys)
        )
        try:
            return _connect(connection) or _ask(connection)
        finally:
            connection.close()


def _connect(connection: http.client.HTTPSConnection) -> ExtenderProbe | None:
    """Returns None when the extender has shown its certificate."""
    try:
        connection.connect()
    except ssl.SSLError as error:
        # An extender that is starting also breaks connections, or sends alerts.
        is_stranger = isinstance(error, ssl.SSLCertVerificationError) or error.reason == _NO_TLS
        return ExtenderProbe("stranger" if is_stranger else "nobody", str(error))
    except OSError as error:
        return ExtenderProbe("nobody", str(error) or type(error).__name__)
    return None


def _ask(connection: http.client.HTTPSConnection) -> ExtenderProbe:
    try:
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        # TLS 1.3 refuses our certificate only now: the extender has not loaded the keys yet.
        return ExtenderProbe("unready", str(error) or type(error).__name__)
    return ExtenderProbe("ready" if status == http.client.OK else "unready", f"HTTP {status}")


def _context(keys: Keys) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=keys.trusted_pem.decode())
    with _file_in_memory(keys.client.encode()) as path:
        context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    """Lends a path, because ssl takes nothing else, to content that must not lie on a disk."""
    descriptor = os.memfd_create("client.pem")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
