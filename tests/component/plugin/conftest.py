"""A node between a fake kubelet and a fake API server, with and without the plugin."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.plugin_node import Node, running_node


@pytest.fixture
async def idle_node(tmp_path: Path) -> AsyncIterator[Node]:
    """No plugin runs yet."""
    async with running_node(tmp_path) as node:
        yield node


@pytest.fixture
async def node(idle_node: Node) -> Node:
    """The plugin is registered."""
    await idle_node.start_plugin()
    await idle_node.until_registered()
    return idle_node
