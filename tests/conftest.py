"""How tests are spread over processes that run side by side."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

SECOND_CLUSTER = frozenset({"test_lifecycle", "test_nodes", "test_scheduler_connection"})
"""Modules that take about as long as all others with a cluster together.

Those that start more clusters are among the others, one after the other: machines usually lend 128 inotify
instances, and a cluster of four nodes takes 36.
"""


class TwoClusters(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Keeps a module in one process, and the modules that share a cluster.

    ``--dist=loadgroup`` would be for that, but does nothing with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        module, _, _ = nodeid.partition("::")
        folder, _, name = module.removesuffix(".py").rpartition("/")
        if not folder.endswith("tests/e2e"):
            return module
        return "second cluster" if name in SECOND_CLUSTER else "first cluster"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return TwoClusters(config, log)
