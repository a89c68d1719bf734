"""The plugin stays registered whatever the kubelet does, and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.api_server import SHARE_NODES
from tests.fakes.plugin_node import Node, running_node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_core.kube.follow import Backoff
from gpushare_plugin.decide.conditions import Registration
from gpushare_plugin.devices.simulated import card_uuid
from gpushare_plugin.kubelet import registration as kubelet_module
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.registration import Registrar

CARDS = [card_uuid(NODE, index) for index in range(2)]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with running_node(tmp_path) as made:
        yield made


@pytest.fixture
async def registered(node: Node) -> Node:
    await node.start_plugin()
    await node.until_registered()
    return node


def sockets(node: Node) -> list[str]:
    return sorted(path.name for path in node.kubelet.device_plugins.iterdir())


async def test_it_offers_every_unit_and_the_choice_among_them(registered: Node) -> None:
    kubelet = registered.kubelet
    assert kubelet.plugin
    request = kubelet.plugin.request
    assert (request.version, request.endpoint, request.resource_name) == (
        "v1beta1",
        "gpushare-memory.sock",
        "gpushare.io/memory",
    )
    assert request.options.get_preferred_allocation_available
    assert list(kubelet.devices.values()) == ["Healthy"] * 32
    assert kubelet.lists == [32 * 16]
    status = registered.share_node.status
    assert (status.memory_unit, status.summary, status.observed_generation) == ("1Gi", "0/16 0/16", 1)


async def test_when_told_to_stop_it_leaves_nothing_in_the_kubelets_folder(registered: Node) -> None:
    assert sockets(registered) == ["gpushare-memory.sock", "kubelet.sock"]
    await registered.stop_plugin()
    assert sockets(registered) == ["kubelet.sock"]


async def test_it_registers_again_after_each_restart_of_the_kubelet(registered: Node) -> None:
    kubelet = registered.kubelet
    pod = pod_json("a", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    held = (await registered.run_pod(pod)).held["main"]
    for restart in (2, 3):
        await kubelet.stop()
        await registered.until("the loss", lambda: registered.condition("Registered")[0] == "False")
        await kubelet.start()
        await kubelet.until(f"registration {restart}", lambda it: len(it.devices) == 32)
        await registered.until_registered()
    assert set(held) <= set(kubelet.devices)
    await registered.until("the books", lambda: registered.share_node.status.summary == "0/16 4/16")


async def test_a_kubelet_that_comes_late_is_waited_for(node: Node) -> None:
    await node.kubelet.stop()
    await node.start_plugin()
    await node.until("the complaint", lambda: "is the kubelet running?" in node.message("Registered"))
    assert node.condition("Registered") == ("False", "KubeletUnreachable")
    await node.kubelet.start()
    await node.until_registered()


async def test_a_refusal_is_told_and_tried_again_without_spinning(node: Node) -> None:
    node.kubelet.refuse = "no room for you"
    await node.start_plugin()
    await node.until("the complaint", lambda: "no room for you" in node.message("Registered"))
    node.kubelet.refuse = ""
    await node.until_registered()
    assert node.kubelet.registrations == 1


async def test_a_socket_that_somebody_removed_is_made_anew(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_module, "WATCHDOG_PERIOD", 0.05)
    await node.start_plugin()
    await node.until_registered()
    (node.kubelet.device_plugins / "gpushare-memory.sock").unlink()
    await node.kubelet.until("the second registration", lambda it: it.registrations >= 2)
    await node.kubelet.until("all devices healthy", lambda it: list(it.devices.values()) == ["Healthy"] * 32)
    await node.until_registered()


async def test_a_restarted_plugin_means_the_same_cards(registered: Node) -> None:
    pod = pod_json("a", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    await registered.run_pod(pod)
    await registered.until("the books", lambda: registered.share_node.status.summary == "0/16 4/16")
    await registered.restart_plugin()
    again = await registered.run_pod(
        pod_json("b", container(units=4), annotation=annotation({"main": {CARDS[1]: 4}}))
    )
    assert again.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await registered.until("both", lambda: registered.share_node.status.summary == "0/16 8/16")
    assert not [path for path in registered.api.patched if "/pods/" in path]


async def test_health_is_served_over_http(registered: Node) -> None:
    assert registered.agent
    assert registered.agent.sickness() == ""
    assert registered.agent.unreadiness() == ""
    await registered.kubelet.stop()
    await registered.until("unreadiness", lambda: registered.agent.unreadiness() != "")  # type: ignore[union-attr]


# Changes while it runs


async def test_reserved_memory_is_applied_live_with_one_list(registered: Node) -> None:
    registered.share(reservedMemory="1Gi")
    await registered.until("the status", lambda: registered.share_node.status.summary == "0/15 0/15")
    await registered.kubelet.until("the list", lambda it: len(it.devices) == 30)
    assert registered.kubelet.lists == [512, 480]
    assert registered.kubelet.registrations == 1


async def test_a_change_of_unit_waits_until_the_last_pod_is_gone_over_a_restart_too(registered: Node) -> None:
    await registered.run_pod(pod_json("a", container(units=4)))
    registered.share("512Mi")
    blocked = ("True", "PodsHoldUnits")
    await registered.until("the block", lambda: registered.condition("UnitChangeBlocked") == blocked)
    assert len(registered.kubelet.devices) == 32
    await registered.restart_plugin()
    await registered.until_registered()
    assert registered.share_node.status.memory_unit == "1Gi"
    assert registered.condition("UnitChangeBlocked") == blocked
    registered.end_pod("a")
    await registered.kubelet.until("the finer list", lambda it: len(it.devices) == 64)
    await registered.until("the new unit", lambda: registered.share_node.status.memory_unit == "512Mi")
    assert registered.condition("UnitChangeBlocked") == ("False", "NotBlocked")


async def test_a_policy_deleted_and_applied_anew_with_another_unit_finds_the_pods(registered: Node) -> None:
    await registered.run_pod(pod_json("a", container(units=4)))
    await registered.until("the annotation", lambda: registered.allocation("a") is not None)
    registered.api.delete(SHARE_NODES, NODE)
    await registered.kubelet.until("an empty list", lambda it: it.devices == {})
    await registered.stop_plugin()
    registered.share("512Mi")
    await registered.start_plugin()
    await registered.kubelet.until("the old list", lambda it: len(it.devices) == 32)
    await registered.until("its name", lambda: registered.share_node.status.memory_unit == "1Gi")
    assert registered.condition("UnitChangeBlocked")[0] == "True"


async def test_when_the_node_is_not_shared_any_more_nothing_is_offered_and_pods_go_on(
    registered: Node,
) -> None:
    await registered.run_pod(pod_json("a", container(units=4)))
    await registered.until("the annotation", lambda: registered.allocation("a") is not None)
    registered.api.delete(SHARE_NODES, NODE)
    await registered.kubelet.until("an empty list", lambda it: it.devices == {})
    assert registered.allocation("a") is not None
    assert registered.agent
    assert registered.agent.unreadiness() == ""
    registered.share()
    await registered.kubelet.until("the list", lambda it: len(it.devices) == 32)


async def test_what_this_version_cannot_serve_is_said(node: Node) -> None:
    node.share(mode="Slices", slicesPerCard=2)
    await node.start_plugin()
    await node.until("the reason", lambda: node.condition("Registered") == ("False", "UnsupportedMode"))
    assert node.kubelet.registrations == 0
    node.share()
    await node.until_registered()


async def test_a_unit_that_is_too_fine_leaves_the_last_one_registered(registered: Node) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "80G"}]}
    registered.share("1M", devices=devices)
    await registered.until(
        "the complaint", lambda: registered.condition("UnitTooFine") == ("True", "TooManyUnits")
    )
    assert registered.share_node.status.memory_unit == "1Gi"
    await registered.kubelet.until("the cards in the old unit", lambda it: len(it.devices) == 8 * 74)
    registered.share("3M", devices=devices)
    await registered.kubelet.until("the finest unit", lambda it: len(it.devices) == 8 * 26_666)


async def test_256000_units_serve_a_pod(registered: Node) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "32G"}]}
    registered.share("1M", devices=devices)
    await registered.kubelet.until("the long list", lambda it: len(it.devices) == 256_000, within=20)
    assert registered.kubelet.lists[-1] == 4_096_000
    wanted = card_uuid(NODE, 7)
    told = annotation({"main": {wanted: 16_000}}, unit="1M")
    begun = asyncio.get_running_loop().time()
    admitted = await registered.run_pod(pod_json("big", container(units=16_000), annotation=told))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == wanted
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "15258"
    assert asyncio.get_running_loop().time() - begun < 5
    await registered.until("the books", lambda: registered.share_node.status.units.allocated == 16_000)


# The parts


async def test_the_end_of_an_older_stream_means_nothing() -> None:
    stream = DeviceStream()
    stream.offer(b"list")
    older, newer = stream.serve(), stream.serve()
    assert await anext(older) == b"list"
    assert await anext(newer) == b"list"
    await older.aclose()  # type: ignore[attr-defined]
    assert stream.is_open
    await newer.aclose()  # type: ignore[attr-defined]
    assert not stream.is_open


async def test_an_older_stream_gets_no_more_lists_and_a_list_is_sent_once() -> None:
    stream = DeviceStream()
    stream.offer(b"one")
    older = stream.serve()
    assert await anext(older) == b"one"
    newer = stream.serve()
    assert await anext(newer) == b"one"
    stream.offer(b"one")
    stream.offer(b"two")
    assert await anext(newer) == b"two"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(older)


async def test_while_the_kubelet_is_away_pauses_grow_and_never_vanish(tmp_path: Path) -> None:
    paused: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 8:
            enough.set()
            await asyncio.Event().wait()

    stream = DeviceStream()
    stream.offer(b"")
    registrar = Registrar(
        directory=tmp_path,
        endpoint="x.sock",
        resource="r",
        handler=None,  # type: ignore[arg-type]
        stream=stream,
        notify=lambda: None,
        backoff=Backoff(most=5.0, sleep=sleep, jitter=lambda: 1.0),
    )
    running = asyncio.create_task(registrar.run())
    async with asyncio.timeout(5):
        await enough.wait()
    running.cancel()
    assert paused == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert registrar.state == Registration(
        registered=False, message=f"{tmp_path}/kubelet.sock does not exist: is the kubelet running?"
    )
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240  # nothing else runs
