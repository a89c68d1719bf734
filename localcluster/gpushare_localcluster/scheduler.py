"""The checkout's own kube-scheduler, as an image of a cluster."""

from gpushare_localcluster.build.binary import SCHEDULER, ensure_program
from gpushare_localcluster.build.minors import Minor
from gpushare_localcluster.cluster import LocalCluster, to_stderr


def add_scheduler(cluster: LocalCluster, version: str, *, minor: Minor | None = None) -> None:
    """Lets images with the tag VERSION-MINOR, such as ``0.1.0-1.37``, have it; does nothing for a minor that
    it is not built of. A cluster with containerd has the images that it was started with instead.

    ``minor``: the cluster's where it is None; another one before an upgrade to it.
    """
    minor = minor or cluster.kubernetes
    if minor in SCHEDULER.minors:
        built = ensure_program(SCHEDULER, minor, report=to_stderr)
        cluster.images.add(f"{version}-{minor.name}", built.programs)
