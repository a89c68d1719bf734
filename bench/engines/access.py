"""How programs outside of pods reach a local cluster's API server with the rights of our kube-scheduler."""

import asyncio
import base64
import json
from dataclasses import dataclass
from pathlib import Path

from bench.engines.configuration import kubeconfig

from gpushare_core.api.names import NAMESPACE
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, from_kubeconfig
from gpushare_localcluster.cluster import API_ADDRESS, API_PORT, LocalCluster

HOURS = 24
CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Access:
    """``kubeconfig``: the account's, for programs in the network of the control plane."""

    kubeconfig: Path
    account: Credentials
    """The same, for this process."""
    administrator: str
    """The administrator's token: with it metrics are read."""

    def client(self) -> KubeClient:
        """Returns a client with the account's rights."""
        return KubeClient(self.account, timeout=CALL_SECONDS)


async def access_for(cluster: LocalCluster, folder: Path, account: str) -> Access:
    """Writes the kubeconfig into ``folder``. The account has to be there."""
    return await asyncio.to_thread(_access, cluster, folder, account)


def _access(cluster: LocalCluster, folder: Path, account: str) -> Access:
    options = (f"--namespace={NAMESPACE}", f"--duration={HOURS}h")
    token = cluster.kubectl("create", "token", account, *options).strip()
    authority = base64.b64encode(cluster.pki_file("ca.crt").read_bytes()).decode()
    file = folder / f"{account}.kubeconfig"
    server = f"https://{API_ADDRESS}:{API_PORT}"
    file.write_text(json.dumps(kubeconfig(server=server, authority=authority, token=token)))
    administrator = from_kubeconfig(cluster.kubeconfig)
    return Access(file, administrator.of_bearer(token), administrator.token() or "")
