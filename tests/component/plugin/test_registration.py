"""The plugin stays registered whatever the kubelet does, and leaves nothing behind."""

import asyncio
from pathlib import Path

import pytest
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_core.kube.backoff import Backoff
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.devices.simulated.source import card_uuid
from gpushare_plugin.kubelet import registration
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.plugin_server import PluginServer
from gpushare_plugin.kubelet.registration import Registrar

CARDS = [card_uuid(NODE, index) for index in range(2)]


def sockets(node: Node) -> list[str]:
    return sorted(path.name for path in node.kubelet.device_plugins.iterdir() if path.is_socket())


async def test_it_offers_every_unit_and_the_choice_among_them(node: Node) -> None:
    kubelet = node.kubelet
    assert kubelet.plugin
    request = kubelet.plugin.request
    assert (request.version, request.resource_name) == ("v1beta1", "gpushare.io/memory")
    assert request.options.get_preferred_allocation_available
    assert list(kubelet.devices.values()) == ["Healthy"] * 32
    assert kubelet.lists == [32 * 16]
    status = node.share_node.status
    assert (status.memory_unit, status.summary, status.observed_generation) == ("1Gi", "0/16 0/16", 1)


async def test_when_stopped_it_leaves_nothing_in_the_kubelets_folder(node: Node) -> None:
    assert sockets(node) == ["gpushare-gpushare.io-memory.sock", "kubelet.sock"]
    await node.stop_plugin()
    assert sockets(node) == ["kubelet.sock"]


async def test_it_registers_again_after_each_restart_of_the_kubelet(node: Node) -> None:
    kubelet = node.kubelet
    pod = pod_json("a", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    held = (await node.run_pod(pod)).held["main"]
    for restart in (2, 3):
        await kubelet.stop()
        await node.until("the loss", lambda: node.condition("Registered")[0] == "False")
        await kubelet.start()
        await kubelet.until(f"registration {restart}", lambda it: len(it.devices) == 32)
        await node.until_registered()
    assert set(held) <= set(kubelet.devices)
    await node.until("the status", lambda: node.share_node.status.summary == "0/16 4/16")


async def test_a_kubelet_that_comes_late_is_waited_for(idle_node: Node) -> None:
    await idle_node.kubelet.stop()
    await idle_node.start_plugin()
    await idle_node.until(
        "the condition", lambda: "is the kubelet running?" in idle_node.message("Registered")
    )
    assert idle_node.condition("Registered") == ("False", "KubeletUnreachable")
    await idle_node.kubelet.start()
    await idle_node.until_registered()


async def test_a_refusal_is_shown_and_tried_again_without_spinning(idle_node: Node) -> None:
    idle_node.kubelet.refuse = "no room for you"
    await idle_node.start_plugin()
    await idle_node.until("the condition", lambda: "no room for you" in idle_node.message("Registered"))
    idle_node.kubelet.refuse = ""
    await idle_node.until_registered()
    assert idle_node.kubelet.registrations == 1


async def test_a_socket_that_somebody_removed_is_made_anew(
    idle_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "WATCHDOG_PERIOD", 0.05)
    await idle_node.start_plugin()
    await idle_node.until_registered()
    (idle_node.kubelet.device_plugins / "gpushare-gpushare.io-memory.sock").unlink()
    await idle_node.kubelet.until("the second registration", lambda it: it.registrations >= 2)
    await idle_node.kubelet.until(
        "all devices healthy", lambda it: list(it.devices.values()) == ["Healthy"] * 32
    )
    await idle_node.until_registered()


async def test_a_restarted_plugin_means_the_same_cards(node: Node) -> None:
    pod = pod_json("a", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    await node.run_pod(pod)
    await node.until("the status", lambda: node.share_node.status.summary == "0/16 4/16")
    await node.restart_plugin()
    again = await node.run_pod(
        pod_json("b", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    )
    assert again.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("both", lambda: node.share_node.status.summary == "0/16 8/16")
    assert not [path for path in node.api.patched if "/pods/" in path]


async def test_health_is_served_over_http(node: Node) -> None:
    assert node.agent
    assert node.agent.liveness_problem() == ""
    assert node.agent.readiness_problem() == ""
    await node.kubelet.stop()
    await node.until("the problem", lambda: node.agent.readiness_problem() != "")  # type: ignore[union-attr]


async def test_while_the_kubelet_is_away_delays_grow_and_never_vanish(tmp_path: Path) -> None:
    delays: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 8:
            enough.set()
            await asyncio.Event().wait()

    stream = DeviceStream()
    stream.offer(b"")
    registrar = Registrar(
        PluginServer(tmp_path / "x.sock", handler=None),  # type: ignore[arg-type]
        resource="r",
        stream=stream,
        notify=lambda: None,
        backoff=Backoff(most=5.0, sleep=sleep, jitter=lambda: 1.0),
    )
    running = asyncio.create_task(registrar.run())
    async with asyncio.timeout(30):
        await enough.wait()
    running.cancel()
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert registrar.state == RegistrationState(
        registered=False, message=f"{tmp_path}/kubelet.sock does not exist: is the kubelet running?"
    )
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240  # nothing else runs
