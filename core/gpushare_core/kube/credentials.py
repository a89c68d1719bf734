"""How to reach an API server and who we are there."""

import base64
import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gpushare_core.api.names import NAMESPACE
from gpushare_core.kube.http_calls import checked_host, checked_server
from gpushare_core.kube.tls import RENEW_SECONDS, Pem, RenewedTls, TlsParts, TlsSource
from gpushare_core.text.json_object import UNREADABLE_JSON

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_KUBECONFIG = 2**20
"""Characters. Nobody but its owner writes it, and with keys in it each of dozens of clusters takes 6 KiB."""
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)
"""What is raised where a kubeconfig is not of the shape of one."""

TOKEN_SECONDS = RENEW_SECONDS

TokenSource = Callable[[], str | None]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RenewedToken:
    """The token in a file that the kubelet writes anew long before it expires; client-go reads it once a
    minute. Source: KEP-1205.

    A file that cannot be read for the moment, or is empty, changes nothing: without a token a call would be
    one of nobody, who may do nothing.
    """

    file: Path
    clock: Callable[[], float] = time.monotonic
    """In steady seconds."""
    _token: str = field(default="", init=False)
    _good_until: float = field(default=float("-inf"), init=False)

    def __call__(self) -> str:
        """Raises ``OSError`` or ``ValueError`` where there has been no token yet."""
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
            _log.warning("going on with the token before, the one there now cannot be read: %s", error)
            return self._token
        return token


@dataclass(frozen=True, slots=True)
class Credentials:
    """``token`` is called for every request: a bound ServiceAccount token is renewed on disk.

    It returns a bearer token, or a whole ``Basic ...`` for a proxy that authenticates people in front.
    """

    server: str
    tls: TlsSource
    token: TokenSource
    server_name: str | None = None
    """What the server's certificate has to name, where that is not the host in ``server``."""
    proxy: str | None = None
    """URL of an HTTP proxy on the way."""

    def of_bearer(self, token: str) -> "Credentials":
        """Returns what reaches the same server as whoever has ``token``, and never as ourselves: a client
        certificate of ours would count before it.

        Raises:
            TypeError: whether these have a client certificate cannot be told.
        """
        if not isinstance(self.tls, RenewedTls):
            raise TypeError("credentials that are not made of files or a kubeconfig cannot be lent")
        return replace(self, tls=self.tls.without_certificate(), token=lambda: token)


class NoCredentialsError(Exception):
    """Neither in a pod nor given a usable kubeconfig."""


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Credentials:
    """Returns what the kubelet gave the pod.

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
    """Returns what the current context of ``path`` says: a token or a client certificate (no exec plugins).
    Files in it may be named from where it lies, as kubectl reads it.

    Raises:
        NoCredentialsError: the file lacks what is needed.
    """
    try:
        config = _parsed(path.read_text())
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        return Credentials(
            server=_server(cluster),
            tls=_tls(cluster, user, path.parent),
            token=_token(user, path.parent),
            server_name=checked_host(_text(cluster, "tls-server-name") or "") or None,
            proxy=_proxy(cluster),
        )
    except (OSError, StopIteration, *UNREADABLE) as error:
        raise NoCredentialsError(f"{path} is no usable kubeconfig: {error!r}") from error


def _parsed(text: str) -> Any:
    """Raises ``ValueError`` for what is no YAML. JSON, which is YAML, too, is read without the library for
    the rest: that costs 1 MB, and a program in a cluster, which has none, is measured beside a kubeconfig."""
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
    """Returns what the kubeconfig says if one is named, else what the pod has."""
    return from_kubeconfig(kubeconfig) if kubeconfig else in_cluster()


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _server(cluster: Mapping[str, Any]) -> str:
    server = _text(cluster, "server")
    if not server:
        raise ValueError("the cluster has no server")
    checked_server(server)
    return server


def _proxy(cluster: Mapping[str, Any]) -> str | None:
    """Raises ``ValueError`` for one that is not of HTTP, such as SOCKS: we speak no other."""
    proxy = _text(cluster, "proxy-url")
    if proxy:
        checked_server(proxy)
    return proxy


def _token(user: Mapping[str, Any], folder: Path) -> TokenSource:
    """A file goes before a token beside it, as in client-go."""
    if file := _text(user, "tokenFile"):
        return RenewedToken(folder / file)
    token = _text(user, "token")
    return lambda: token


def _text(entry: Mapping[str, Any], name: str) -> str | None:
    text = entry.get(name)
    if not isinstance(text, str | None):
        raise TypeError(f"{name} is no text")
    return text


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> TlsSource:
    return RenewedTls(
        TlsParts(
            authority=_pem(cluster, "certificate-authority", folder),
            certificate=_pem(user, "client-certificate", folder),
            key=_pem(user, "client-key", folder),
            is_verified=not cluster.get("insecure-skip-tls-verify"),
        )
    )


def _pem(entry: Mapping[str, Any], name: str, folder: Path) -> Pem:
    if data := entry.get(f"{name}-data"):
        return base64.b64decode(data)
    return folder / entry[name] if entry.get(name) else None
