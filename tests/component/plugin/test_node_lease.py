"""The Lease by which a plugin is heard of."""

from datetime import UTC, datetime

import pytest
from tests.fakes.api_server import LEASES, SHARE_NODES
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE

from gpushare_core.api.plugin_heartbeat import heartbeat_lease
from gpushare_plugin.cluster import node_lease

NAME = f"plugin.{NODE}"


def lease(node: Node) -> dict[str, object]:
    found: dict[str, object] = node.api.objects[LEASES].get(("", NAME), {})
    return found


async def test_a_plugin_that_works_renews_the_lease_of_its_node(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.until("the Lease", lambda: bool(lease(node)))
    before = lease(node)
    monkeypatch.setattr(node_lease, "RENEW_SECONDS", 0.05)
    await node.restart_plugin()
    await node.until("a renewal", lambda: lease(node)["spec"] != before["spec"])


async def test_the_lease_goes_with_the_share_node(node: Node) -> None:
    await node.until("the Lease", lambda: bool(lease(node)))
    share_node = node.api.objects[SHARE_NODES]["", NODE]
    expected = heartbeat_lease(NODE, share_node["metadata"]["uid"], datetime.now(UTC))["metadata"]
    metadata = lease(node)["metadata"]
    assert isinstance(metadata, dict)
    assert {key: metadata[key] for key in expected} == expected


async def test_without_a_share_node_nothing_is_renewed(
    idle_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_lease, "SOON", 0.01)
    share_node = idle_node.api.objects[SHARE_NODES].pop(("", NODE))
    await idle_node.start_plugin()
    await idle_node.until("the list", lambda: SHARE_NODES in [call.path for call in idle_node.api.seen])
    assert not lease(idle_node)
    idle_node.api.put(SHARE_NODES, share_node)
    await idle_node.until("the Lease", lambda: bool(lease(idle_node)))
