"""The real local clusters that this suite shares: one for each process that runs tests."""

from collections.abc import Iterator, Sequence

import pytest
from tests.e2e.fixtures import books_agree, namespace, product, shared_policy, tight_policy

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig

__all__ = ["books_agree", "cluster", "namespace", "product", "shared_policy", "tight_policy"]

SECOND_CLUSTER = ("test_lifecycle", "test_nodes", "test_operator_workloads", "test_scheduler_connection")
"""Modules that take about as long as all others together.

Those with clusters of their own are among the others, one after the other: machines usually lend 128 inotify
instances, and a cluster of four nodes takes 36.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Keeps each module in one process when tests run side by side: its tests share a policy."""
    for item in items:
        if item.get_closest_marker("e2e"):
            group = "second" if item.path.stem in SECOND_CLUSTER else "first"
            item.add_marker(pytest.mark.xdist_group(f"{group} cluster"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One control plane and three workers, ready; whoever changes a node puts it back."""
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        running.start(ClusterConfig.of_size(workers=3))
        running.wait_ready()
        yield running
