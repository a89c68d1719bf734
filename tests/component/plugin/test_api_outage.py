"""Liveness says that the process is stuck, not that the API server is away."""

import asyncio

import pytest
from tests.fakes.api_server import SHARE_NODES, cut, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, pod_json

from gpushare_core.kube.paths import PODS
from gpushare_plugin.agent import Agent


async def test_it_lives_while_the_api_server_does_not_answer_at_its_start(
    idle_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.agent.STUCK_AFTER", 0.3)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.PERIOD", 0.1)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.BOOKKEEPING_RETRY", 0.1)
    for path in (SHARE_NODES, PODS):
        idle_node.api.fail("GET", path, *[status(503), cut] * 500)
    await idle_node.start_plugin()
    await idle_node.until("its start", lambda: idle_node.agent is not None)
    await asyncio.sleep(1)
    agent = idle_node.agent
    assert agent
    await idle_node.until("its life", lambda: agent.liveness_problem() == "")
    assert agent.readiness_problem() == "waiting for the API server"
    idle_node.api.recover()
    await idle_node.until_registered()


async def test_it_serves_on_what_it_knows_while_the_api_server_does_not_answer(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.agent.STUCK_AFTER", 1.0)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.PERIOD", 0.1)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.BOOKKEEPING_RETRY", 0.1)
    pod = pod_json("a", container(units=4))
    node.api.put(PODS, pod)
    await node.until("the pod", lambda: node.knows("a"))
    assert node.api.server
    await node.api.server.close()
    admitted = await node.kubelet.admit(pod)
    assert admitted.variables["main"]["GPUSHARE_UNITS"] == "4"
    await asyncio.sleep(1.5)
    agent = node.agent
    assert agent
    await node.until("its life", lambda: agent.liveness_problem() == "")


async def test_a_reader_that_is_stuck_is_a_reason_to_be_restarted(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.agent.STUCK_AFTER", 0.3)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.TIMEOUT", 60.0)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.PERIOD", 0.1)
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.BOOKKEEPING_RETRY", 0.1)
    node.kubelet.deaf = True
    agent = node.agent
    assert agent
    await node.until("the complaint", lambda: "assignments were read" in agent.liveness_problem())
    node.kubelet.deaf = False


async def test_it_is_never_long_until_the_status_is_written_again(
    idle_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 5 s after the API server answers again the books agree."""
    waits = list[float]()

    async def wait(_: Agent, seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(Agent, "_wait_until_changed", wait)
    idle_node.api.fail("PATCH", f"{SHARE_NODES}/{NODE}/status", *[status(504)] * 1000)
    idle_node.share()
    await idle_node.start_plugin()
    await idle_node.until("a dozen attempts", lambda: len(waits) >= 12)
    assert 2.0 <= max(waits[:12]) <= 4.0
