"""What a command logs in with that asks no cluster."""

import ssl

from gpushare_cli.login.cluster_login import DEFAULT_NAMESPACE, ClusterLogin
from gpushare_core.kube.credentials import Credentials

NO_CLUSTER = ClusterLogin(
    credentials=Credentials("http://localhost", ssl.create_default_context, lambda: None),
    namespace=DEFAULT_NAMESPACE,
)
"""Nothing is sent there: a client connects with its first request."""
