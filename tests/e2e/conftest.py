"""The real local cluster that this suite shares."""

from collections.abc import Iterator

import pytest
from tests.e2e.fixtures import (
    books_agree,
    connection,
    has_engine,
    namespace,
    product,
    shared_policy,
    tight_policy,
)
from tests.e2e.same_everywhere import reason
from tests.fakes.browser import chromium, tab

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig

__all__ = [
    "books_agree",
    "chromium",
    "cluster",
    "connection",
    "has_engine",
    "namespace",
    "product",
    "shared_policy",
    "tab",
    "tight_policy",
]


def pytest_itemcollected(item: pytest.Item) -> None:
    if same := reason(item.nodeid):
        item.add_marker(pytest.mark.same_everywhere(same))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One control plane and three workers, ready; whoever changes a node puts it back.

    Every process that runs tests has its own.
    """
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as running:
        running.start(ClusterConfig.of_size(workers=3))
        running.wait_ready()
        yield running
