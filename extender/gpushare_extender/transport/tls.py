"""Mutual TLS with kube-scheduler: who comes without a certificate of our authority is not heard."""

import asyncio
import logging
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

LOOK_SECONDS = 5.0
GONE_SECONDS = 600.0
BUFFER_SIZE = 32 * 1024
"""Bytes: two records of TLS."""

_log = logging.getLogger(__name__)


class FilesGoneError(Exception):
    """The key pair was taken away; the text says what that means."""


def use_small_buffers() -> None:
    """Makes every TLS connection of this process read ``BUFFER_SIZE`` at a time.

    asyncio has no setting for it, and gives 256 KiB to each: the connections of one burst of binds, 500 with
    kube-scheduler, cost 146 MiB and with this 36, which the process does not get rid of any more.
    """
    SSLProtocol.max_size = BUFFER_SIZE


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of the server's certificate, its key, and the authority of the clients' certificates."""

    certificate: Path
    key: Path
    client_authority: Path
    demands_certificate: bool = field(default=True, kw_only=True)
    """Of clients; without it anybody is served, and has to prove by other means who it is."""

    def load(self) -> ssl.SSLContext:
        """Returns a context for new connections.

        Raises:
            OSError: a file is missing or cannot be read, or is no such PEM (``ssl.SSLError``).
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if self.demands_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.client_authority)
        return context

    def state(self) -> tuple[object, ...]:
        """Returns what differs when a file was written or replaced."""
        return tuple(_state(path) for path in (self.certificate, self.key, self.client_authority))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@dataclass(slots=True)
class ServerTls:
    """The context for new connections, read again whenever a file has changed.

    While the files cannot be used (only half replaced, say) the context before stays in force. Once they are
    gone no new connection is served: who took them away trusts them no longer. Connections that are open stay
    so, after another authority was put there, too, as long as requests come on them; ``end_when_gone`` ends
    them with the process.
    """

    files: TlsFiles
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    protocols: tuple[str, ...] = field(default=("http/1.1",), kw_only=True)
    """That clients may agree upon, the best one first."""
    problem: str = field(default="", init=False)
    """Why the files cannot be used; empty when they can."""
    _state: tuple[object, ...] | None = field(default=None, init=False)
    _context: ssl.SSLContext | None = field(default=None, init=False)

    def context(self) -> ssl.SSLContext | None:
        """Returns None while there have been no usable files yet, and when they are gone."""
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
            FilesGoneError: the files were there, and have been gone for ``GONE_SECONDS``. Who makes them
                again makes another folder, which only a new mount shows. Not earlier: while a policy is taken
                back the process is ended anyway, and a container that starts again would make the folder on
                the host that was just removed.
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
