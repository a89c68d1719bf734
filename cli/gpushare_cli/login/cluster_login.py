"""Which API server to ask, as whom, and in which namespace.

As kubectl: the context of the kubeconfigs, else the ServiceAccount of the pod that this runs in.
"""

from argparse import Namespace
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gpushare_cli.login.impersonation import impersonation_headers
from gpushare_cli.login.kubeconfig import ChosenContext, choose_context, no_context, read_kubeconfig
from gpushare_cli.login.plugin_process import NOBODY, PluginTerminal
from gpushare_cli.login.renewal import LastingLogin, LoginCredential, RenewedLogin
from gpushare_core.kube.client import REQUEST_TIMEOUT
from gpushare_core.kube.credentials import (
    SERVICE_ACCOUNT,
    UNREADABLE,
    Credentials,
    NoCredentialsError,
    credentials_of,
    in_cluster,
    tls_parts,
)
from gpushare_core.process.clock import utc_now

DEFAULT_NAMESPACE = "default"
ATTENDED_SECONDS = 300.0
"""In which somebody at a terminal logs in, with a browser or a code: as long as kubelogin waits, and more."""
UNATTENDED_SECONDS = 30.0
"""In which an exec plugin ends that nobody can answer; those of the clouds take one to five."""
AUTHENTICATE_AGAIN = "they may have expired: log in again, and see kubectl auth whoami"
PLUGIN_IS_REFUSED = "the identity that it logs in with may have no access to this cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    credentials: Credentials
    namespace: str
    timeout: float = REQUEST_TIMEOUT
    """Seconds for one request."""


def cluster_login(
    options: Namespace,
    environment: Mapping[str, str],
    *,
    terminal: PluginTerminal = NOBODY,
    service_account: Path = SERVICE_ACCOUNT,
    now: Callable[[], datetime] = utc_now,
) -> ClusterLogin:
    """Starts nothing: an exec plugin runs before the first request, and may ask at ``terminal``.

    Raises:
        NoCredentialsError: a kubeconfig cannot be used, or there is none.
    """
    config = read_kubeconfig(options.kubeconfig, environment)
    chosen = choose_context(config, context=options.context, cluster=options.cluster, user=options.user)
    if chosen:
        credentials = _Login(chosen, options.request_timeout, environment, terminal, now).credentials()
        user = chosen.user.content
    else:
        credentials, user = _of_pod(environment, service_account, otherwise=no_context(config)), {}
    return ClusterLogin(
        credentials=replace(credentials, headers=impersonation_headers(options, user)),
        namespace=(
            options.namespace
            or (chosen and chosen.namespace)
            or _namespace_of_pod(environment, service_account)
            or DEFAULT_NAMESPACE
        ),
        timeout=options.request_timeout or REQUEST_TIMEOUT,
    )


@dataclass(frozen=True, slots=True)
class _Login:
    chosen: ChosenContext
    timeout: float
    environment: Mapping[str, str]
    terminal: PluginTerminal
    now: Callable[[], datetime]

    def credentials(self) -> Credentials:
        """As in client-go, a token or password takes precedence over an auth-provider, these and a client
        certificate over an exec plugin."""
        chosen = self.chosen
        try:
            stored = credentials_of(chosen.cluster, chosen.user)
            proxied = replace(stored, proxy=stored.proxy or self._environment_proxy(stored.server))
            has_token = stored.token() is not None
        except (OSError, *UNREADABLE) as error:
            raise NoCredentialsError(f"{chosen} cannot be used: {error} ({chosen.cluster.file})") from error
        user = chosen.user.content
        has_certificate = bool(user.get("client-certificate") or user.get("client-certificate-data"))
        if user.get("auth-provider") and not has_token:
            return self._renewed(proxied, self._oidc(), f"{chosen}, by OIDC", AUTHENTICATE_AGAIN)
        if user.get("exec") and not has_token and not has_certificate:
            return self._by_plugin(proxied)
        return replace(proxied, renewal=LastingLogin(stored.server, str(chosen), AUTHENTICATE_AGAIN))

    def _by_plugin(self, credentials: Credentials) -> Credentials:
        from gpushare_cli.login.exec_plugin import exec_plugin

        plugin = exec_plugin(
            self.chosen.user,
            self.chosen.cluster,
            environment=self.environment,
            terminal=self.terminal,
            seconds=self.timeout or (ATTENDED_SECONDS if self.terminal.is_attended else UNATTENDED_SECONDS),
        )
        who = f"{self.chosen}, which {plugin} makes"
        return self._renewed(credentials, plugin.credential, who, PLUGIN_IS_REFUSED)

    def _oidc(self) -> Callable[[], Awaitable[LoginCredential]]:
        from gpushare_cli.login.oidc import oidc_login
        from gpushare_cli.login.stored_tokens import store_tokens

        seconds = self.timeout or REQUEST_TIMEOUT
        return oidc_login(self.chosen.user, keep=store_tokens, now=self.now, seconds=seconds)

    def _renewed(
        self,
        credentials: Credentials,
        get: Callable[[], Awaitable[LoginCredential]],
        who: str,
        advice: str,
    ) -> Credentials:
        renewal = RenewedLogin(
            get=get,
            trust=tls_parts(self.chosen.cluster, self.chosen.user),
            server=credentials.server,
            who=who,
            advice=advice,
            now=self.now,
        )
        return replace(credentials, token=renewal.token, tls=renewal.tls, renewal=renewal)

    def _environment_proxy(self, server: str) -> str | None:
        names = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")
        if not any(self.environment.get(name) for name in names):
            return None
        from gpushare_cli.login.environment_proxy import proxy_of_environment

        return proxy_of_environment(server, self.environment)


def _of_pod(environment: Mapping[str, str], folder: Path, *, otherwise: str) -> Credentials:
    try:
        credentials = in_cluster(environment, folder)
    except NoCredentialsError as error:
        raise NoCredentialsError(otherwise) from error
    who = "the pod's ServiceAccount"
    return replace(credentials, renewal=LastingLogin(credentials.server, who, AUTHENTICATE_AGAIN))


def _namespace_of_pod(environment: Mapping[str, str], folder: Path) -> str:
    """Returns that of the pod that this runs in. Source: client-go, ``inClusterClientConfig``."""
    if not environment.get("KUBERNETES_SERVICE_HOST") or not (folder / "token").is_file():
        return ""
    with suppress(OSError, ValueError):
        return environment.get("POD_NAMESPACE") or (folder / "namespace").read_text().strip()
    return ""
