"""Mutual TLS with kube-scheduler: a client without a certificate of our authority is not served."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

LOOK_SECONDS = 5.0
GONE_SECONDS = 600.0

_log = logging.getLogger(__name__)


class FilesGoneError(Exception):
    """The key pair was removed."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of the server's certificate, its key, and the authority of the clients' certificates."""

    certificate: Path
    key: Path
    client_authority: Path
    demands_certificate: bool = field(default=True, kw_only=True)
    """Of clients. Without it anybody may connect, and the application has to authenticate clients."""

    def load(self) -> ssl.SSLContext:
        """
        Raises:
            OSError: a file is missing, cannot be read, or is not the expected PEM (``ssl.SSLError``).
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if self.demands_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.client_authority)
        return context

    def state(self) -> tuple[object, ...]:
        """Returns a value that differs once a file was written or replaced."""
        return tuple(_state(path) for path in (self.certificate, self.key, self.client_authority))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@dataclass(slots=True)
class ServerTls:
    """The TLS context for new connections, loaded again whenever a file has changed.

    1. While the files cannot be used, such as when only one was replaced yet, the previous context stays.
    2. Once the files are gone, no new connection is served: whoever removed them no longer trusts them.
    3. Open connections stay open as long as requests come on them, also after the authority was replaced;
       ``end_when_gone`` ends them with the process.
    """

    files: TlsFiles
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    protocols: tuple[str, ...] = field(default=("http/1.1",), kw_only=True)
    """Offered to clients by ALPN, the preferred one first."""
    problem: str = field(default="", init=False)
    """Why the files cannot be used; empty if they can."""
    _state: tuple[object, ...] | None = field(default=None, init=False)
    _context: ssl.SSLContext | None = field(default=None, init=False)

    def context(self) -> ssl.SSLContext | None:
        """Returns None until the files were usable once, and when they are gone."""
        state = self.files.state()
        if self._context is not None and not self._present():
            self.problem = f"the key pair in {self.files.certificate.parent} was removed"
            return None
        if self.problem or state != self._state:
            self._state = state
            self._load()
        return self._context

    async def end_when_gone(self) -> None:
        """Never returns.

        Raises:
            FilesGoneError: the files were there, and have been gone for ``GONE_SECONDS``. New files come in
                another folder, which only a new mount shows, so the container has to start again. It does not
                do so earlier: while a policy is being deleted the process is ended anyway, and a container
                that starts again would recreate the folder that was just removed from the host.
        """
        gone = 0.0
        while gone < GONE_SECONDS:
            await self.sleep(LOOK_SECONDS)
            gone = gone + LOOK_SECONDS if self._context is not None and not self._present() else 0.0
        raise FilesGoneError(f"the key pair in {self.files.certificate.parent} was removed")

    def _present(self) -> bool:
        return any(state is not None for state in self.files.state())

    def _load(self) -> None:
        before = self.problem
        try:
            self._context, self.problem = self.files.load(), ""
            self._context.set_alpn_protocols(self.protocols)
            _log.info("serving with the certificate in %s", self.files.certificate)
        except OSError as error:
            self.problem = f"cannot use the key pair in {self.files.certificate.parent}: {error}"
            if self.problem != before:
                _log.warning("%s", self.problem)
