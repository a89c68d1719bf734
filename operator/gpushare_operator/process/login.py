"""The operator's credentials: kubernetes-asyncio reads them, core's client uses them."""

import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration
from yaml import YAMLError

from gpushare_core.kube.credentials import Credentials, NoCredentialsError
from gpushare_core.kube.tls import RenewedTls, TlsParts

_log = logging.getLogger(__name__)


async def login(kubeconfig: Path | None) -> Credentials:
    """Returns the credentials in ``kubeconfig``, or those of the pod that this process runs in.

    Raises NoCredentialsError: they are not enough, or this is no pod with a ServiceAccount.
    """
    configuration = await _from_kubeconfig(kubeconfig) if kubeconfig else _in_cluster()
    try:
        return credentials_of(configuration)
    except (OSError, ValueError) as error:
        raise NoCredentialsError(
            f"the certificates for {configuration.host} cannot be used: {error}"
        ) from error


async def _from_kubeconfig(path: Path) -> Configuration:
    configuration = Configuration()
    try:
        await config.load_kube_config(config_file=str(path), client_configuration=configuration)
    except (config.ConfigException, YAMLError, OSError, TypeError, ValueError) as error:
        raise NoCredentialsError(f"{path} is no usable kubeconfig: {error}") from error
    return configuration


def _in_cluster() -> Configuration:
    configuration = Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError) as error:
        raise NoCredentialsError(f"not in a pod with a ServiceAccount, give --kubeconfig: {error}") from error
    return configuration


def credentials_of(configuration: Configuration) -> Credentials:
    """Returns credentials that ask ``configuration`` for the token at every request.

    Raises OSError or ValueError: certificates that cannot be read or used.
    """
    # In a cluster this reads the token anew, which the kubelet renews on disk.
    refresh: Any = configuration.refresh_api_key_hook

    def token() -> str | None:
        try:
            if refresh:
                refresh(configuration)
        except (config.ConfigException, OSError) as error:
            # The one before stays, as with core's credentials.
            _log.warning("cannot read the token for the API server, using the previous one: %s", error)
        header = configuration.api_key.get("BearerToken")
        return header.removeprefix("Bearer ") if header else None

    return Credentials(
        server=str(configuration.host),
        tls=RenewedTls(_tls_parts(configuration)),
        token=token,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy or _proxy_of_environment(str(configuration.host)),
    )


def _proxy_of_environment(server: str) -> str | None:
    """From ``HTTPS_PROXY``, ``NO_PROXY`` and the like."""
    url = urlsplit(server)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


def _tls_parts(configuration: Configuration) -> TlsParts:
    """kubernetes-asyncio has written certificates from within a kubeconfig into temporary files."""
    return TlsParts(
        authority=_path(configuration.ssl_ca_cert),
        certificate=_path(configuration.cert_file),
        key=_path(configuration.key_file),
        is_verified=configuration.verify_ssl,
        is_strict=not configuration.disable_strict_ssl_verification,
    )


def _path(name: str | None) -> Path | None:
    return Path(name) if name else None
