"""Who a kubeconfig says that the operator is: kubernetes-asyncio reads it, core's client uses it."""

import ssl
from pathlib import Path
from typing import Any

from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration
from yaml import YAMLError

from gpushare_core.kube.credentials import Credentials, NoCredentialsError


async def read(path: Path) -> Credentials:
    """Returns what the file says: tokens, certificates, programs that fetch them.

    Raises:
        NoCredentialsError: it does not say enough, or what cannot be used.
    """
    configuration = await _load(path)
    try:
        return credentials_of(configuration)
    except OSError as error:
        raise NoCredentialsError(
            f"the certificates for {configuration.host} cannot be used: {error}"
        ) from error


async def _load(path: Path) -> Configuration:
    configuration = Configuration()
    try:
        await config.load_kube_config(config_file=str(path), client_configuration=configuration)
    except (config.ConfigException, YAMLError, OSError, TypeError, ValueError) as error:
        raise NoCredentialsError(f"{path} is no usable kubeconfig: {error}") from error
    return configuration


def credentials_of(configuration: Configuration) -> Credentials:
    """Returns credentials that ask ``configuration`` for its token at every request.

    Raises:
        OSError: certificates that cannot be read or used.
    """

    # What fetches tokens is asked again before they expire.
    refresh: Any = configuration.refresh_api_key_hook

    def token() -> str | None:
        if refresh:
            refresh(configuration)
        header = configuration.api_key.get("BearerToken")
        return header.removeprefix("Bearer ") if header else None

    return Credentials(
        server=str(configuration.host),
        tls=_tls(configuration),
        token=token,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )


def _tls(configuration: Configuration) -> ssl.SSLContext:
    tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        tls.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if configuration.disable_strict_ssl_verification:
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls
