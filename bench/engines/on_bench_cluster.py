"""What stands on a cluster of the benchmark."""

from dataclasses import dataclass

from bench.cluster.bench_cluster import BenchCluster
from bench.cluster.cluster_objects import Layout
from bench.measuring.size import Size

from gpushare_core.kube.client import KubeClient


@dataclass(slots=True)
class OnBenchCluster:
    base: BenchCluster

    @property
    def client(self) -> KubeClient:
        """The administrator's."""
        return self.base.client

    @property
    def size(self) -> Size:
        return self.base.size

    @property
    def layout(self) -> Layout:
        return self.base.layout
