"""Who the operator is at the API server: a pod's ServiceAccount, or what a kubeconfig says."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from gpushare_core.kube.credentials import Credentials, NoCredentialsError, in_cluster


async def login(kubeconfig: Path | None) -> Credentials:
    """Returns what ``kubeconfig`` says, or what the pod has that this process runs in.

    Raises:
        NoCredentialsError: it does not say enough, or this is no pod with a ServiceAccount.
    """
    credentials = await _from_kubeconfig(kubeconfig) if kubeconfig else in_cluster()
    return replace(credentials, proxy=credentials.proxy or proxy_of_environment(credentials.server))


async def _from_kubeconfig(path: Path) -> Credentials:
    try:
        # With all that people log in by it costs 37 MB, and in a pod nobody reads a kubeconfig.
        from gpushare_operator.cluster import kubeconfig
    except ModuleNotFoundError as error:
        raise NoCredentialsError(
            f"a kubeconfig is read by the package {error.name}: pip install 'gpushare[kubeconfig]'"
        ) from error
    return await kubeconfig.read(path)


def proxy_of_environment(server: str) -> str | None:
    """Returns what ``HTTPS_PROXY`` and its kin say of ``server``."""
    url = urlsplit(server)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
