"""A cluster for measuring, and the product on it, installed by its own manifests."""

import json
from pathlib import Path

from gpushare_core.api.names import NAMESPACE
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig

ROOT = Path(__file__).resolve().parent.parent
WORKER = "gpu-1"

CONFIG = ClusterConfig(
    nodes=ClusterConfig.of_size(workers=1).nodes,
    # Nodes that only exist as objects never send a heartbeat.
    component_flags={"kube-controller-manager": ["--node-monitor-grace-period=24h"]},
)

POLICY = {
    "apiVersion": "gpushare.io/v1alpha1",
    "kind": "GPUSharePolicy",
    "metadata": {"name": "default"},
    "spec": {
        "nodes": [
            {
                "names": [WORKER],
                "devices": {"source": "Simulated", "simulated": [{"count": 8, "memory": "16Gi"}]},
            }
        ]
    },
}


def install_crds(cluster: LocalCluster) -> None:
    """Installs what ``bench.fill_cluster`` needs, without anything that runs."""
    cluster.kubectl("apply", "-k", str(ROOT / "crds"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/gpusharenodes.gpushare.io", "--timeout=30s")


def install(cluster: LocalCluster) -> None:
    """Installs everything and waits until a policy for the one worker is Ready."""
    cluster.kubectl("apply", "-k", str(ROOT / "manifests"))
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(POLICY))
    cluster.kubectl("wait", "--for=condition=Ready", "gpusharepolicy/default", "--timeout=180s", timeout=200)


def stop_operator(cluster: LocalCluster) -> None:
    """Stops the operator and the admission policy.

    The operator would take back GPUShareNodes that no policy asked for, and the admission policy would
    refuse allocations that the extender did not grant.
    """
    cluster.kubectl("delete", "validatingadmissionpolicybinding", "gpushare-pods")
    cluster.kubectl("scale", "deployment/gpushare-operator", "-n", NAMESPACE, "--replicas=0")
    cluster.kubectl(
        "wait",
        "pod",
        "-n",
        NAMESPACE,
        "-l",
        "app.kubernetes.io/component=operator",
        "--for=delete",
        "--timeout=60s",
    )


def remove_nodes(cluster: LocalCluster, names: list[str]) -> None:
    cluster.kubectl("delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
    cluster.kubectl("delete", "node", *names)
    cluster.kubectl("delete", "gpusharenodes", *names)
