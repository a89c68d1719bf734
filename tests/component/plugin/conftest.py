"""A node between a fake kubelet and a fake API server, with and without the plugin."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.plugin_node import Node, running_node


@pytest.fixture
async def idle_node() -> AsyncIterator[Node]:
    """No plugin runs yet."""
    # The path of a Unix socket has 107 characters at most: too few for a folder named after the test.
    with tempfile.TemporaryDirectory(prefix="kubelet-") as directory:
        async with running_node(Path(directory)) as node:
            yield node


@pytest.fixture
async def node(idle_node: Node) -> Node:
    """The plugin is registered."""
    await idle_node.start_plugin()
    await idle_node.until_registered()
    return idle_node


@pytest.fixture
def no_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is assigned is read only when something happens that calls for it."""
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.PERIOD", 3600.0)
