"""The TLS context of requests to the API server, made anew when its files have changed.

Client certificates and authorities are renewed on disk, by the kubelet among others. A process with an
expired certificate could read and write nothing until it is started again.
"""

import logging
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

RENEW_SECONDS = 10.0
"""For which files that were read are used; reading one costs as much as a small request."""

TlsSource = Callable[[], ssl.SSLContext]
"""Returns the same context until a file changes."""
Pem = Path | bytes | None
"""A file, or its content."""

_log = logging.getLogger(__name__)


class TlsContents(NamedTuple):
    """The bytes that a context is made of."""

    authority: bytes | None
    chain: bytes | None
    """Certificate and key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsParts:
    """Whom a client trusts, and with what it authenticates."""

    authority: Pem = None
    """None for the authorities that the system trusts."""
    certificate: Pem = None
    key: Pem = None
    """None where the key is in the same file as the certificate."""
    is_verified: bool = True
    is_strict: bool = False
    """Whether X.509 is checked as strictly as this version of Python does by default. From 3.13 on that is
    stricter than Go: it refuses authorities without key identifiers, which clusters have."""

    def read(self) -> TlsContents:
        """Raises ``OSError``."""
        certificate = _content(self.certificate)
        chain = None if certificate is None else certificate + b"\n" + (_content(self.key) or b"")
        return TlsContents(_content(self.authority), chain)

    def context(self, contents: TlsContents) -> ssl.SSLContext:
        """Raises ``OSError`` or ``ValueError`` for an unusable PEM, or a key of another certificate."""
        # Text between certificates may be in any script; OpenSSL skips it.
        authority = None if contents.authority is None else contents.authority.decode("ascii", "ignore")
        if authority is not None and not authority.strip():
            raise ValueError("the certificate of the authority is empty")
        tls = ssl.create_default_context(cadata=authority)
        if not self.is_verified:
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if not self.is_strict:
            tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if contents.chain is not None:
            _load_client(tls, contents.chain)
        return tls


@dataclass(slots=True)
class RenewedTls:
    """The context for new connections. While the files cannot be used, such as a new certificate beside the
    old key, the previous context is used.

    Raises:
        OSError, ValueError: the files cannot be used from the start.
    """

    parts: TlsParts
    clock: Callable[[], float] = time.monotonic
    """Steady seconds."""
    _contents: TlsContents = field(init=False)
    _context: ssl.SSLContext = field(init=False)
    _good_until: float = field(init=False)
    _problem: str = field(default="", init=False)
    """Why the present files cannot be used."""

    def __post_init__(self) -> None:
        self._good_until = self.clock() + RENEW_SECONDS
        self._contents = self.parts.read()
        self._context = self.parts.context(self._contents)

    def __call__(self) -> ssl.SSLContext:
        if self.clock() >= self._good_until:
            self._good_until = self.clock() + RENEW_SECONDS
            self._renew()
        return self._context

    def without_certificate(self) -> "RenewedTls":
        """Returns the same trust without a client certificate."""
        return RenewedTls(replace(self.parts, certificate=None, key=None), self.clock)

    def _renew(self) -> None:
        before, self._problem = self._problem, ""
        try:
            contents = self.parts.read()
            if contents != self._contents:
                self._context, self._contents = self.parts.context(contents), contents
                _log.info("the certificates for requests to the API server were renewed")
        except (OSError, ValueError) as error:
            self._problem = (
                f"cannot use the present certificates for the API server, using the previous ones: {error}"
            )
            if self._problem != before:
                _log.warning("%s", self._problem)


def _content(pem: Pem) -> bytes | None:
    return pem.read_bytes() if isinstance(pem, Path) else pem


def _load_client(tls: ssl.SSLContext, chain: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:  # the ssl module loads certificates from files only
        file.write(chain)
        file.flush()
        tls.load_cert_chain(file.name, password="")  # otherwise OpenSSL asks for one on the terminal
