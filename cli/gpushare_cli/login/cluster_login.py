"""Which API server to ask, as whom, and in which namespace."""

import os
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.kube.client import REQUEST_TIMEOUT
from gpushare_core.kube.credentials import Credentials, find_credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    credentials: Credentials
    namespace: str
    timeout: float = REQUEST_TIMEOUT
    """Seconds for one request."""


def cluster_login(options: Namespace, environment: Mapping[str, str]) -> ClusterLogin:
    """Raises ``NoCredentialsError``."""
    return ClusterLogin(
        credentials=find_credentials(options.kubeconfig or _usual_file(environment)),
        namespace=options.namespace or "default",
    )


def _usual_file(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    usual = Path(environment.get("HOME", "/")) / ".kube" / "config"
    if named:
        return Path(named)
    return usual if usual.is_file() else None
