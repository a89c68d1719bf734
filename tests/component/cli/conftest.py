"""A node whose plugin runs between a fake kubelet and a fake API server."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.plugin_node import Node, running_node


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    with tempfile.TemporaryDirectory(prefix="kubelet-") as directory:
        async with running_node(Path(directory)) as node:
            await node.start_plugin()
            await node.until_registered()
            yield node


@pytest.fixture
def kubelet(node: Node) -> Path:
    """The kubelet's folder, as a real one has it."""
    folder = node.kubelet.device_plugins.parent
    (folder / "pod-resources").mkdir()
    (folder / "pod-resources" / "kubelet.sock").symlink_to(node.kubelet.pod_resources)
    return folder
