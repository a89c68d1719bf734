"""Pods that the kubelet knew first are looked up, as far as they still matter here."""

from collections.abc import AsyncIterator

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.plugin_api import PluginApi, plugin_api
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.kube.client import KubeClient
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.state import NodeState

ONE = name_of("a")


@pytest.fixture
async def api() -> AsyncIterator[PluginApi]:
    async with plugin_api() as fake:
        yield fake


async def state_after_reading(api: PluginApi) -> NodeState:
    """What is known of ``ONE`` after its spec was read."""
    state = NodeState(NODE)
    async with KubeClient(api.credentials()) as client:
        await PodWatch(state, client, ended=lambda: None).read_specs([ONE], timeout=5)
    return state


async def test_what_a_pod_asks_for_is_read(api: PluginApi) -> None:
    api.put(PODS, pod_json("a", container(units=4)))
    request = (await state_after_reading(api)).pods[ONE].request
    assert request
    assert request.total == 4


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_finished_is_not_remembered(api: PluginApi, phase: str) -> None:
    api.put(PODS, {**pod_json("a", container(units=4)), "status": {"phase": phase}})
    assert (await state_after_reading(api)).pods == {}


async def test_a_pod_of_another_node_is_not_remembered(api: PluginApi) -> None:
    api.put(PODS, pod_json("a", container(units=4), node="gpu-2"))
    assert (await state_after_reading(api)).pods == {}


async def test_a_pod_that_is_not_there_is_not_remembered(api: PluginApi) -> None:
    assert (await state_after_reading(api)).pods == {}
