"""Rights that a test has just given: the API server learns of a role and its binding a moment later."""

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until


def await_right(cluster: LocalCluster, *question: str) -> None:
    """Wait until it may be done. ``question``: as ``kubectl auth can-i`` has it."""
    wait_until(f"may {' '.join(question)}", lambda: may(cluster, *question), interval=0.2)


def may(cluster: LocalCluster, *question: str) -> bool:
    try:
        return cluster.kubectl("auth", "can-i", *question).strip() == "yes"
    except LocalClusterError:
        return False
