"""How to reach an API server, and as whom."""

import base64
import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import SplitResult, urlsplit

from gpushare_core.api.names import NAMESPACE
from gpushare_core.kube.tls import RENEW_SECONDS, Pem, RenewedTls, TlsParts, TlsSource
from gpushare_core.text.json_object import UNREADABLE_JSON

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_KUBECONFIG = 2**20
"""Characters. Only its owner writes it; a cluster with keys in it takes 6 KiB, and there may be dozens."""
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""Errors for a file that has not the structure of a kubeconfig."""

TOKEN_SECONDS = RENEW_SECONDS

TokenSource = Callable[[], str | None]

_log = logging.getLogger(__name__)


def checked_server(url: str) -> tuple[str, SplitResult]:
    """Returns the host in ``url``, and its parts. Raises ``ValueError`` for what is no URL of a server; the
    text is without a password in it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        shown = re.sub("//[^/]*@", "//...@", url)
        raise ValueError(f"{shown!r} is no URL of a server, with http:// or https://")
    return checked_host(parts.hostname), parts


def checked_host(name: str) -> str:
    """Returns ``name``. Raises ``ValueError`` where no host can have that name."""
    try:
        name.encode("idna")  # as every connection does
    except UnicodeError as error:
        raise ValueError(f"{name!r} is no URL of a server, nor of its host: {error}") from error
    return name


@dataclass(slots=True)
class RenewedToken:
    """The token in a file, which the kubelet renews long before it expires; client-go reads it once a minute.
    Source: KEP-1205.

    While the file is empty or cannot be read, the previous token is used: without a token every request would
    be refused.
    """

    file: Path
    clock: Callable[[], float] = time.monotonic
    """Steady seconds."""
    _token: str = field(default="", init=False)
    _good_until: float = field(default=float("-inf"), init=False)

    def __call__(self) -> str:
        """Raises ``OSError`` or ``ValueError`` where no token was ever read."""
        if self.clock() >= self._good_until:
            self._token, self._good_until = self._read(), self.clock() + TOKEN_SECONDS
        return self._token

    def _read(self) -> str:
        try:
            token = self.file.read_text()
            if not token.strip():
                raise ValueError(f"{self.file} is empty")
        except (OSError, ValueError) as error:
            if not self._token:
                raise
            _log.warning("cannot read the token for the API server, using the previous one: %s", error)
            return self._token
        return token


class Renewal(Protocol):
    """Gets credentials that do not last and are not in files, such as those of an exec plugin."""

    async def prepared(self) -> int:
        """Is awaited before every request. Returns the number of the credentials that it is sent with.

        Raises:
            NoCredentialsError: there are none.
        """

    async def refused(self, number: int) -> None:
        """Is awaited when the server does not know whoever sent a request (401). Returns where the same
        request is worth another try, which has to end: new credentials are refused only once.

        Raises:
            NoCredentialsError: there are no better ones.
        """


@dataclass(frozen=True, slots=True)
class Credentials:
    """``token`` is called for every request: a bound ServiceAccount token is renewed on disk. It returns a
    bearer token, or a whole ``Basic ...`` for a proxy in front that authenticates people."""

    server: str
    tls: TlsSource
    token: TokenSource
    server_name: str | None = None
    """The name in the server's certificate, where that is not the host in ``server``."""
    proxy: str | None = None
    """URL of an HTTP proxy."""
    headers: tuple[tuple[str, str], ...] = ()
    """Of every request, beside those of its own: as whom it acts."""
    renewal: Renewal | None = None

    def of_bearer(self, token: str) -> "Credentials":
        """Returns credentials for the same server with ``token`` alone: a client certificate of ours would
        take precedence over it.

        Raises:
            TypeError: it is unknown whether these credentials have a client certificate.
        """
        if not isinstance(self.tls, RenewedTls):
            raise TypeError("only credentials of files or of a kubeconfig can be used with another token")
        tls = self.tls.without_certificate()
        return replace(self, tls=tls, token=lambda: token, headers=(), renewal=None)


class NoCredentialsError(Exception):
    """The process is not in a pod, and has no usable kubeconfig; or nothing in it is accepted."""


class KubeconfigEntry(NamedTuple):
    """A cluster or a user of a kubeconfig."""

    content: Mapping[str, Any]
    file: Path

    @property
    def folder(self) -> Path:
        """From where paths in the file begin."""
        return self.file.parent


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Credentials:
    """Returns the credentials that the kubelet gives the pod.

    Raises:
        NoCredentialsError: this process does not run in a pod with a ServiceAccount.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (folder / "token").is_file():
        raise NoCredentialsError("not in a pod with a ServiceAccount: give --kubeconfig")
    name = f"[{host}]" if ":" in host else host
    try:
        tls = RenewedTls(TlsParts(authority=folder / "ca.crt"))
    except (OSError, ValueError) as error:
        raise NoCredentialsError(f"cannot use {folder / 'ca.crt'}: {error}") from error
    return Credentials(f"https://{name}:{port}", tls, RenewedToken(folder / "token"))


def from_kubeconfig(path: Path) -> Credentials:
    """Returns the credentials of the current context: a token or a client certificate (no exec plugins).
    Paths in the file may be relative to its folder, as for kubectl.

    Raises:
        NoCredentialsError: the file lacks what is needed.
    """
    try:
        config = parsed_kubeconfig(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        return credentials_of(KubeconfigEntry(cluster, path), KubeconfigEntry(user, path))
    except (OSError, StopIteration, *UNREADABLE) as error:
        raise NoCredentialsError(f"{path} is no usable kubeconfig: {error!r}") from error


def credentials_of(cluster: KubeconfigEntry, user: KubeconfigEntry) -> Credentials:
    """Raises ``OSError``, or one of ``UNREADABLE``."""
    return Credentials(
        server=_server(cluster.content),
        tls=RenewedTls(tls_parts(cluster, user)),
        token=_token(user),
        server_name=checked_host(text_in(cluster.content, "tls-server-name") or "") or None,
        proxy=_proxy(cluster.content),
    )


def parsed_kubeconfig(text: str) -> Any:
    """Raises ``ValueError`` for what is no YAML. JSON is read without the YAML library, which costs 1 MB:
    memory is measured with a kubeconfig, which the programs in a cluster do not have."""
    if text.startswith("{") and len(text) <= MAX_KUBECONFIG:
        with suppress(*UNREADABLE_JSON):
            return json.loads(text)
    from gpushare_core.text import yaml_edit

    try:
        return yaml_edit.first_document(text, max_characters=MAX_KUBECONFIG)
    except yaml_edit.YamlEditError as error:
        raise ValueError(str(error)) from error


def own_namespace() -> str:
    """Returns the namespace of the pod this process runs in, or the usual one."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    except OSError:
        return NAMESPACE


def find_credentials(kubeconfig: Path | None) -> Credentials:
    """Returns the credentials of the kubeconfig, or those of the pod where none is named."""
    return from_kubeconfig(kubeconfig) if kubeconfig else in_cluster()


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _server(cluster: Mapping[str, Any]) -> str:
    server = text_in(cluster, "server")
    if not server:
        raise ValueError("the cluster has no server")
    checked_server(server)
    return server


def _proxy(cluster: Mapping[str, Any]) -> str | None:
    proxy = text_in(cluster, "proxy-url")
    return checked_proxy(proxy) if proxy else None


def checked_proxy(url: str) -> str:
    """Returns ``url``. Raises ``ValueError`` for a proxy that is not of HTTP, such as SOCKS."""
    try:
        checked_server(url)
    except ValueError as error:
        raise ValueError(f"its proxy cannot be used: {error}") from error
    return url


def _token(user: KubeconfigEntry) -> TokenSource:
    """As in client-go, a file takes precedence over a token."""
    if file := text_in(user.content, "tokenFile"):
        return RenewedToken(user.folder / file)
    token = text_in(user.content, "token") or _basic(user.content)
    return lambda: token


def _basic(user: Mapping[str, Any]) -> str | None:
    """For a proxy in front: the API server itself takes no passwords any more."""
    name, password = text_in(user, "username") or "", text_in(user, "password") or ""
    pair = base64.b64encode(f"{name}:{password}".encode()).decode()
    return f"Basic {pair}" if name or password else None


def text_in(entry: Mapping[str, Any], name: str) -> str | None:
    """Raises ``TypeError`` where the field is there and no text."""
    text = entry.get(name)
    if not isinstance(text, str | None):
        raise TypeError(f"{name} is no text")
    return text


def is_insecure(cluster: Mapping[str, Any]) -> bool:
    """Returns whether nobody's certificate is checked. Raises ``TypeError`` for a text, even ``"false"``."""
    field = cluster.get("insecure-skip-tls-verify")
    if not isinstance(field, bool | None):
        raise TypeError("insecure-skip-tls-verify is neither true nor false")
    return bool(field)


def tls_parts(cluster: KubeconfigEntry, user: KubeconfigEntry) -> TlsParts:
    """As kubectl, raises ``ValueError`` where an authority is named that would not be asked."""
    authority = _pem(cluster, "certificate-authority")
    if authority and is_insecure(cluster.content):
        raise ValueError("insecure-skip-tls-verify and a certificate-authority exclude each other")
    return TlsParts(
        authority=authority,
        certificate=_pem(user, "client-certificate"),
        key=_pem(user, "client-key"),
        is_verified=not is_insecure(cluster.content),
    )


def _pem(entry: KubeconfigEntry, name: str) -> Pem:
    if data := entry.content.get(f"{name}-data"):
        return base64.b64decode(data)
    return entry.folder / entry.content[name] if entry.content.get(name) else None
