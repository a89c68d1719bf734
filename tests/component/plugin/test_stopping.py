"""A plugin that stops writes so into its GPUShareNode, so that no pods come that the kubelet would refuse."""

import asyncio

import pytest
from tests.fakes.api_server import SHARE_NODES, Answer
from tests.fakes.plugin_api import merged
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE

from gpushare_core.kube.client import REQUEST_TIMEOUT

STATUS = f"{SHARE_NODES}/{NODE}/status"


async def test_a_plugin_that_stops_says_so(node: Node) -> None:
    await node.stop_plugin()
    assert node.condition("Registered") == ("False", "Stopping")
    assert node.share_node.status.summary == "0/16 0/16"
    await node.start_plugin()
    await node.until_registered()


async def test_a_plugin_that_stops_says_so_though_others_change_its_object_just_then(node: Node) -> None:
    async def annotate(_: object) -> None:
        changed = node.api.objects[SHARE_NODES]["", NODE]
        node.api.put(SHARE_NODES, merged(changed, {"metadata": {"annotations": {"example.com/note": "new"}}}))

    node.api.fail("PATCH", STATUS, annotate)
    await node.stop_plugin()
    assert node.condition("Registered") == ("False", "Stopping")


async def test_a_plugin_whose_node_is_not_shared_any_more_stops_silently(node: Node) -> None:
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    node.api.patched.clear()
    await node.stop_plugin()
    assert node.api.patched == []


async def test_an_api_server_that_does_not_answer_keeps_nobody_from_stopping(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.agent.STOPPING_TIMEOUT", 0.2)
    node.api.fail("PATCH", STATUS, silence())
    begun = asyncio.get_running_loop().time()
    await node.stop_plugin()
    assert asyncio.get_running_loop().time() - begun < REQUEST_TIMEOUT - 1, "it does not wait for the call"
    assert sorted(path.name for path in node.kubelet.device_plugins.glob("*.sock")) == ["kubelet.sock"]


def silence() -> Answer:
    async def answer(_: object) -> None:
        await asyncio.sleep(600)

    return answer
