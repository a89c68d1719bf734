"""A cluster with two nodes, and a browser where one can be had."""

from collections.abc import AsyncIterator

import pytest
from tests.fakes.browser import chromium, tab
from tests.fakes.status_facts import policy_object
from tests.fakes.web_cluster import WebCluster, web_cluster
from tests.samples.shared_cards import card, pending_pod_object, share, share_node_object

from gpushare_core.api.names import COMPONENT_LABEL
from gpushare_core.kube.paths import DAEMON_SETS, PODS, POLICIES

__all__ = ["chromium", "cluster", "tab"]

OURS = {"app.kubernetes.io/name": "gpushare"}
RACK = "topology.kubernetes.io/rack"
EXTENDER = {
    "metadata": {"name": "gpushare-extender", "labels": {COMPONENT_LABEL: "extender", **OURS}},
    "status": {"desiredNumberScheduled": 1, "numberReady": 1},
}
MARKUP = "<img src=x onerror=alert(1)>"
"""What no name of the API can be, in the place of one."""


@pytest.fixture
async def cluster() -> AsyncIterator[WebCluster]:
    """Two racks with a node each; one sick card, and a pod that is larger than a card."""
    async with web_cluster() as cluster:
        cluster.put(POLICIES, policy_object())
        cluster.put(DAEMON_SETS, EXTENDER)
        held = share("team-a/train-1", 10, used="6Gi")
        sick = card(1, 16, node="gpu-1", health="Unhealthy", healthReason="Xid 79")
        cluster.put_node(
            share_node_object("gpu-1", card(0, 16, held, node="gpu-1", usedMemory="6Gi"), sick),
            **{RACK: "rack-1"},
        )
        cluster.put_node(share_node_object("gpu-2", card(0, 16, node="gpu-2")), **{RACK: "rack-2"})
        cluster.put(PODS, pending_pod_object("team-b/large", 17, message="0/2 nodes are available"))
        yield cluster
