"""The auth-provider ``oidc`` of a kubeconfig. Source: client-go, ``plugin/pkg/client/auth/oidc``.

kubernetes-asyncio has one as well. It sends the refresh token to whoever answers, because it checks no
certificate unless the kubeconfig names an authority, and cannot load the one that is named.
"""

import base64
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote_plus

import aiohttp
import msgspec

from gpushare_cli.login.renewal import LoginCredential
from gpushare_core.kube.credentials import KubeconfigEntry, NoCredentialsError, checked_server
from gpushare_core.kube.tls import TlsParts
from gpushare_core.text.json_object import MAX_REASON, UNREADABLE_JSON
from gpushare_core.text.printable import printable

T = TypeVar("T")

VALID_FOR = timedelta(seconds=10)
"""An ID token that is sent is valid for so long at least, as in client-go."""
MAX_ANSWER = 2**20
"""Bytes."""
AGAIN = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED)
"""Some providers want the client's secret in the form instead of a header, and answer so otherwise."""


class OidcConfig(msgspec.Struct, rename="kebab", kw_only=True):
    """``user.auth-provider.config`` in a kubeconfig."""

    idp_issuer_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    id_token: str = ""
    refresh_token: str = ""
    idp_certificate_authority: str = ""
    idp_certificate_authority_data: str = ""


class OidcDiscovery(msgspec.Struct):
    token_endpoint: str


class OidcTokens(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""


class _Claims(msgspec.Struct):
    exp: float = 0.0


@dataclass(slots=True)
class OidcLogin:
    """The ID token in the kubeconfig while it is valid, then a new one from the provider.

    ``keep`` stores new tokens where the old ones were: with many providers a refresh token is good once.
    """

    user: KubeconfigEntry
    config: OidcConfig
    keep: Callable[[KubeconfigEntry, dict[str, str]], None]
    now: Callable[[], datetime]
    seconds: float
    """For each request."""
    _is_used: bool = field(default=False, init=False)
    """Whether the token in the kubeconfig is in use: who asks again needs a new one."""

    async def credential(self) -> LoginCredential:
        """Raises ``NoCredentialsError``."""
        expires = expiry(self.config.id_token)
        if not self._is_used and expires and self.now() + VALID_FOR < expires:
            self._is_used = True
            return LoginCredential(token=self.config.id_token, expires=expires)
        if not self.config.refresh_token:
            raise NoCredentialsError(
                f"the ID token of OIDC in {self.user.file} has expired or is refused, and there is no"
                " refresh-token to get a new one; log in at your provider again"
            )
        tokens = await self._refreshed()
        self.config.id_token = tokens.id_token
        self.config.refresh_token = tokens.refresh_token or self.config.refresh_token
        self._keep()
        return LoginCredential(token=tokens.id_token, expires=expiry(tokens.id_token))

    def _keep(self) -> None:
        self.keep(self.user, {"id-token": self.config.id_token, "refresh-token": self.config.refresh_token})

    async def _refreshed(self) -> OidcTokens:
        issuer = self.config.idp_issuer_url
        try:
            timeout = aiohttp.ClientTimeout(total=self.seconds)
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
                tokens = await self._ask(session)
        except (aiohttp.ClientError, OSError, *UNREADABLE_JSON) as error:
            reason = printable(str(error) or type(error).__name__, max_bytes=500)
            raise NoCredentialsError(
                f"the OIDC provider {issuer} gives no new token: {reason}; log in there again"
            ) from error
        if not tokens.id_token:
            raise NoCredentialsError(
                f"the OIDC provider {issuer} gives no ID token for a refresh token; log in there again"
            )
        return tokens

    async def _ask(self, session: aiohttp.ClientSession) -> OidcTokens:
        tls = self._tls()
        url = f"{self.config.idp_issuer_url.rstrip('/')}/.well-known/openid-configuration"
        async with session.get(url, ssl=tls) as response:
            endpoint = (await _read(response, OidcDiscovery)).token_endpoint
        self._check(endpoint)
        form = {"grant_type": "refresh_token", "refresh_token": self.config.refresh_token}
        if self.config.client_secret:
            headers = {"Authorization": self._basic()}
            async with session.post(
                endpoint, data=form, headers=headers, ssl=tls, allow_redirects=False
            ) as response:
                if response.status not in AGAIN:
                    return await _read(response, OidcTokens)
        secret = {"client_secret": self.config.client_secret} if self.config.client_secret else {}
        form = {**form, "client_id": self.config.client_id, **secret}
        async with session.post(endpoint, data=form, ssl=tls, allow_redirects=False) as response:
            return await _read(response, OidcTokens)

    def _basic(self) -> str:
        """Source: RFC 6749, section 2.3.1."""
        pair = f"{quote_plus(self.config.client_id)}:{quote_plus(self.config.client_secret)}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    def _check(self, endpoint: str) -> None:
        """Raises ``ValueError`` where a provider reached by TLS names an endpoint without it."""
        _, parts = checked_server(endpoint)
        if self.config.idp_issuer_url.startswith("https:") and parts.scheme != "https":
            raise ValueError("its token_endpoint is without TLS")

    def _tls(self) -> ssl.SSLContext:
        """Raises ``OSError`` or ``ValueError``."""
        data, file = self.config.idp_certificate_authority_data, self.config.idp_certificate_authority
        named = self.user.folder / file if file else None
        parts = TlsParts(authority=base64.b64decode(data) if data else named)
        return parts.context(parts.read())


async def _read(response: aiohttp.ClientResponse, shape: type[T]) -> T:
    content = await response.content.read(MAX_ANSWER)
    while chunk := await response.content.read(MAX_ANSWER):
        content += chunk
        if len(content) > MAX_ANSWER:
            raise ValueError("its answer is too long")
    return decoded_answer(response.status, content, shape)


def decoded_answer(status: int, content: bytes, shape: type[T]) -> T:
    """Raises one of ``UNREADABLE_JSON``."""
    if status != HTTPStatus.OK:
        raise ValueError(f"{status} {content[:MAX_REASON].decode(errors='replace')}")
    return msgspec.json.decode(content, type=shape)


def expiry(token: str) -> datetime | None:
    """Returns when an ID token (a JWT) expires; None where it does not say so."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        seconds = msgspec.json.decode(payload, type=_Claims).exp
        return datetime.fromtimestamp(seconds, UTC) if seconds else None
    except (*UNREADABLE_JSON, OverflowError, OSError):
        return None


def oidc_login(
    user: KubeconfigEntry,
    *,
    keep: Callable[[KubeconfigEntry, dict[str, str]], None],
    now: Callable[[], datetime],
    seconds: float,
) -> Callable[[], Awaitable[LoginCredential]]:
    """Raises ``NoCredentialsError`` for another auth-provider, or one that lacks what it needs."""
    provider = user.content["auth-provider"]
    name = provider.get("name") if isinstance(provider, dict) else None
    if name != "oidc":
        raise NoCredentialsError(
            f"{user.file} logs in by the auth-provider {name!r}, which kubectl has no more either; let your"
            " provider's command write the kubeconfig again, with an exec plugin"
        )
    try:
        config = msgspec.convert(provider.get("config") or {}, OidcConfig)
    except msgspec.ValidationError as error:
        raise NoCredentialsError(f"{user.file} has an auth-provider that cannot be used: {error}") from error
    if not config.idp_issuer_url or not config.client_id:
        raise NoCredentialsError(f"{user.file} has an auth-provider without idp-issuer-url or client-id")
    return OidcLogin(user, config, keep, now, seconds).credential
