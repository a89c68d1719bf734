"""Credentials for as long as a command runs: made when they are needed, and anew before they expire."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.tls import RenewedTls, TlsParts

RENEWED_BEFORE = timedelta(seconds=30)
"""Before they expire: a request may take as long."""
USED_AT_LEAST = timedelta(seconds=5)
"""Whatever they say of when they expire: a clock may be wrong."""
REFUSED_AGAIN = timedelta(minutes=1)
"""New credentials that are refused within this time are no better than those before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginCredential:
    """A token, or a client certificate with its key, or both."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: datetime | None = None
    """None where that is unknown: they are used until the server refuses them."""


@dataclass(frozen=True, slots=True)
class LastingLogin:
    """A ``Renewal`` of credentials that are in a file: whoever owns it makes new ones."""

    server: str
    who: str
    """Such as ``user 'a' of context 'b'``."""
    advice: str

    async def prepared(self) -> int:
        return 0

    async def refused(self, number: int) -> None:  # noqa: ARG002
        raise NoCredentialsError(_refusal(self.server, self.who, self.advice))


@dataclass(slots=True, kw_only=True)
class RenewedLogin:
    """A ``Renewal`` of credentials that ``get`` returns."""

    get: Callable[[], Awaitable[LoginCredential]]
    """Raises ``NoCredentialsError``."""
    trust: TlsParts
    """A certificate in them is used where ``get`` returns none."""
    server: str
    who: str
    advice: str
    now: Callable[[], datetime]
    _renewing: asyncio.Task[None] | None = field(default=None, init=False)
    """For all requests that wait: what fails for one fails for all."""
    _number: int = field(default=0, init=False)
    _credential: LoginCredential = field(default_factory=LoginCredential, init=False)
    _tls: RenewedTls | None = field(default=None, init=False)
    _made: datetime = field(init=False)
    _follows_refusal: bool = field(default=False, init=False)

    def token(self) -> str | None:
        return self._credential.token or None

    def tls(self) -> ssl.SSLContext:
        if self._tls is None:
            raise ValueError("no credentials were made yet")
        return self._tls()

    async def prepared(self) -> int:
        if not self._number or self.now() >= self._good_until:
            await self._renewed()
            self._follows_refusal = False
        return self._number

    async def refused(self, number: int) -> None:
        if number != self._number:  # renewed by another request
            return
        if self._follows_refusal and self.now() < self._made + REFUSED_AGAIN:
            raise NoCredentialsError(_refusal(self.server, self.who, self.advice))
        await self._renewed()
        self._follows_refusal = True

    async def _renewed(self) -> None:
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.shield(self._renewing)
        finally:
            if self._renewing and self._renewing.done():
                self._renewing = None

    @property
    def _good_until(self) -> datetime:
        expires = self._credential.expires
        if expires is None:
            return datetime.max.replace(tzinfo=self._made.tzinfo)
        early = min(RENEWED_BEFORE, (expires - self._made) / 10)
        return max(expires - early, self._made + USED_AT_LEAST)

    async def _renew(self) -> None:
        made = await self.get()
        if self._tls is None or (made.certificate, made.key) != (
            self._credential.certificate,
            self._credential.key,
        ):
            self._tls = self._context(made)
        self._credential, self._made, self._number = made, self.now(), self._number + 1

    def _context(self, made: LoginCredential) -> RenewedTls:
        parts = self.trust
        if made.certificate:
            parts = replace(parts, certificate=made.certificate, key=made.key)
        try:
            return RenewedTls(parts)
        except (OSError, ValueError) as error:
            raise NoCredentialsError(f"cannot use the certificates for {self.who}: {error}") from error


def _refusal(server: str, who: str, advice: str) -> str:
    return f"the API server {server} does not accept the credentials of {who} (401 Unauthorized); {advice}"
