"""What changes while the plugin runs is applied, but never under a pod."""

import asyncio

import pytest
from tests.fakes.api_server import SHARE_NODES
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_plugin.devices.simulated.source import card_uuid


async def test_reserved_memory_is_applied_live_with_one_list(node: Node) -> None:
    node.share(reservedMemory="1Gi")
    await node.until("the status", lambda: node.share_node.status.summary == "0/15 0/15")
    await node.kubelet.until("the list", lambda it: len(it.devices) == 30)
    assert node.kubelet.lists == [512, 480]
    assert node.kubelet.registrations == 1


async def test_memory_that_a_round_took_is_not_kept_until_the_next_reading(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.TIMEOUT", 600.0)
    node.kubelet.deaf = True  # the next reading does not end while this lasts
    await asyncio.sleep(1.5)
    before = node.given_back
    node.share(reservedMemory="1Gi")
    await node.until("the status", lambda: node.share_node.status.summary == "0/15 0/15")
    await node.until("the memory", lambda: node.given_back > before)


async def test_a_change_of_unit_waits_until_the_last_pod_is_gone_over_a_restart_too(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    node.share("512Mi")
    blocked = ("True", "PodsHoldUnits")
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == blocked)
    assert len(node.kubelet.devices) == 32
    await node.restart_plugin()
    await node.until_registered()
    assert node.share_node.status.memory_unit == "1Gi"
    assert node.condition("UnitChangeBlocked") == blocked
    node.end_pod("a")
    await node.kubelet.until("the finer list", lambda it: len(it.devices) == 64)
    await node.until("the new unit", lambda: node.share_node.status.memory_unit == "512Mi")
    assert node.condition("UnitChangeBlocked") == ("False", "NotBlocked")


async def test_a_policy_deleted_and_applied_anew_with_another_unit_finds_the_pods(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    await node.stop_plugin()
    node.share("512Mi")
    await node.start_plugin()
    await node.kubelet.until("the old list", lambda it: len(it.devices) == 32)
    await node.until("its name", lambda: node.share_node.status.memory_unit == "1Gi")
    assert node.condition("UnitChangeBlocked")[0] == "True"


async def test_when_the_node_is_not_shared_any_more_nothing_is_offered_and_pods_go_on(
    node: Node,
) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    assert node.allocation("a") is not None
    assert node.agent
    assert node.agent.readiness_problem() == ""
    node.share()
    await node.kubelet.until("the list", lambda it: len(it.devices) == 32)


async def test_what_this_version_cannot_serve_is_said(idle_node: Node) -> None:
    idle_node.share(mode="Slices")
    await idle_node.start_plugin()
    await idle_node.until("the reason", lambda: idle_node.condition("Registered") == ("False", "InvalidUnit"))
    assert idle_node.kubelet.registrations == 0
    idle_node.share()
    await idle_node.until_registered()


async def test_a_unit_that_is_too_fine_leaves_the_last_one_registered(node: Node) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "80G"}]}
    node.share("1M", devices=devices)
    await node.until("the condition", lambda: node.condition("UnitTooFine") == ("True", "TooManyUnits"))
    assert node.share_node.status.memory_unit == "1Gi"
    await node.kubelet.until("the cards in the old unit", lambda it: len(it.devices) == 8 * 74)
    node.share("3M", devices=devices)
    await node.kubelet.until("the finest unit", lambda it: len(it.devices) == 8 * 26_666)


async def test_256000_units_serve_a_pod(node: Node) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "32G"}]}
    node.share("1M", devices=devices)
    await node.kubelet.until("the long list", lambda it: len(it.devices) == 256_000)
    assert node.kubelet.lists[-1] == 4_095_900  # a hundred IDs have two letters
    card = card_uuid(NODE, 7)
    text = annotation({"main": {card: 16_000}}, unit="1M")
    admitted = await node.run_pod(pod_json("big", container(units=16_000), annotation=text))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == card
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "15258"
    await node.until("the status", lambda: node.share_node.status.units.allocated == 16_000)


async def test_one_card_too_many_is_left_out_and_the_others_stay(node: Node) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "32G"}]}
    node.share("1M", devices=devices)
    await node.kubelet.until("the long list", lambda it: len(it.devices) == 256_000)
    card = card_uuid(NODE, 7)
    await node.run_pod(
        pod_json("big", container(units=9_000), annotation=annotation({"main": {card: 9_000}}, unit="1M"))
    )
    node.share("1M", devices={"source": "Simulated", "simulated": [{"count": 9, "memory": "32G"}]})
    await node.until("the condition", lambda: node.condition("UnitTooFine") == ("True", "TooManyUnits"))
    await node.until("the pod", lambda: node.on_cards() == {"big": {card: 9_000}})
    assert f"card 8 ({card_uuid(NODE, 8)}) is left out" in node.message("UnitTooFine")
    assert "2M" in node.message("UnitTooFine")
    assert node.condition("Registered") == ("True", "Registered")
    assert [len(node.share_node.status.cards), node.share_node.status.units.total] == [8, 256_000]
    assert len(node.kubelet.devices) == 256_000
    assert len(node.kubelet.lists) == 2
    await node.stop_plugin()
    await node.start_plugin()
    await node.kubelet.until("the list again", lambda it: "Healthy" in it.devices.values())
    assert len(node.kubelet.devices) == 256_000
    assert len(node.share_node.status.cards) == 8


async def test_a_spec_that_this_version_cannot_read_is_said_and_what_was_offered_stays(node: Node) -> None:
    """As after a downgrade of the plugin."""
    node.share(mode="Unheard")
    unreadable = ("True", "SpecUnreadable")
    await node.until("the word", lambda: raw_conditions(node).get("UnitChangeBlocked") == unreadable)
    assert list(node.kubelet.devices.values()) == ["Healthy"] * 32
    await node.stop_plugin()
    await node.start_plugin()
    await node.until("its start", lambda: node.agent is not None)
    await node.until("the word", lambda: "spec.mode" in node.agent.readiness_problem())  # type: ignore[union-attr]
    assert "Healthy" not in node.kubelet.devices.values()
    node.share()
    await node.until_registered()
    assert node.condition("UnitChangeBlocked") == ("False", "NotBlocked")


def raw_conditions(node: Node) -> dict[str, tuple[str, str]]:
    written = node.api.objects[SHARE_NODES]["", NODE]["status"]["conditions"]
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in written}
