"""What of ours could be left in a cluster that has no policy any more."""

from typing import Any

from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import NODES, SHARE_NODES, get
from tests.e2e.product import SYSTEM

from gpushare_localcluster.cluster import LocalCluster

OURS = "gpushare"


def traces(cluster: LocalCluster) -> dict[str, Any]:
    """What of ours could be left on nodes and in the cluster, but for the nodes' capacity."""
    nodes = get(cluster, NODES)["items"]
    return {
        "labels": {
            key: value for node in nodes for key, value in node["metadata"]["labels"].items() if OURS in key
        },
        "annotations": [
            key for node in nodes for key in node["metadata"].get("annotations", {}) if OURS in key
        ],
        "share nodes": get(cluster, SHARE_NODES)["items"],
        "daemonsets": get(cluster, f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets")["items"],
        "jobs": get(cluster, f"/apis/batch/v1/namespaces/{SYSTEM}/jobs")["items"],
        "sockets": [
            path.name
            for node in WORKERS
            for path in cluster.node_path(node, "/var/lib/kubelet/device-plugins").iterdir()
            if OURS in path.name
        ],
    }
