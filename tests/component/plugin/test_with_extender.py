"""The extender and the plugin together: what one promises, the other and its kubelet keep."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender.arguments import Options
from gpushare_extender.extender import Extender
from gpushare_extender.transport.endpoints import Address


@pytest.fixture
async def extender(node: Node) -> AsyncIterator[Extender]:
    """Follows the same API server as the plugin."""
    async with KubeClient(node.api.credentials(), field_manager="test") as client:
        extender = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
        tasks = [asyncio.create_task(task) for task in extender.tasks()]
        for watch in extender.watches:
            await asyncio.wait_for(watch.health.until_applied(0), 30)
        yield extender
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def bind(node: Node, extender: Extender, name: str) -> str:
    """Bind a pod that asks for a whole card. Returns why it is not bound, or an empty text."""
    if ("default", name) not in node.api.objects[PODS]:
        node.api.put(PODS, pod_json(name, container(units=16), node=""))
    return await extender.api.binder.bind(PodReference("default", name, f"uid-{name}"), NODE)


async def test_a_pod_deleted_by_force_as_soon_as_it_is_admitted_keeps_its_card(
    node: Node, extender: Extender
) -> None:
    """The plugin has not told of it yet, and the kubelet does not know that it is gone."""
    assert await bind(node, extender, "a") == ""
    await node.kubelet.admit(node.api.pod("a"))
    node.api.delete(PODS, "a", "default")
    await node.until("the pod gone", lambda: extender.api.ledger.holder("uid-a") is None)
    assert await bind(node, extender, "b") == ""
    await node.kubelet.admit(node.api.pod("b"))
    assert "largest free 0" in await bind(node, extender, "c")
    await node.until("the plugin's report", lambda: set(node.on_cards()) == {"a", "b"})
    assert "largest free 0" in await bind(node, extender, "c")
    node.kubelet.pods.pop(name_of("a"))
    await node.until("room", lambda: extender.api.ledger.greatest[GPUSHARE.memory_resource][NODE] == 16)
    assert await bind(node, extender, "c") == ""
    await node.kubelet.admit(node.api.pod("c"))
