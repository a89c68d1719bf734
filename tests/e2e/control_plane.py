"""The files of a control plane, as its administrator handles them."""

import hashlib

from gpushare_localcluster.cluster import LocalCluster

CONTROL_PLANE = "control-plane-1"
MANIFESTS = "/etc/kubernetes/manifests"
MANIFEST = f"{MANIFESTS}/kube-scheduler.yaml"


def files(cluster: LocalCluster) -> dict[str, str]:
    """Every file below /etc/kubernetes of the control plane and its SHA-256."""
    root = cluster.node_path(CONTROL_PLANE, "/etc/kubernetes")
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def edit_manifest(cluster: LocalCluster, content: bytes) -> None:
    """As an administrator would: written elsewhere and moved in."""
    staged = "/etc/kubernetes/kube-scheduler.edited"
    cluster.node_path(CONTROL_PLANE, staged).write_bytes(content)
    moved = cluster.node_exec(CONTROL_PLANE, ["mv", staged, MANIFEST])
    assert moved.returncode == 0, moved.stderr
