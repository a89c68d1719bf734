"""The kubelet is sent a list only after what its IDs mean was recorded in the GPUShareNode."""

import asyncio
from collections.abc import Callable

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES, cut, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

STATUS = f"{SHARE_NODES}/{NODE}/status"
CARDS = [card_uuid(NODE, index) for index in range(2)]


async def test_a_unit_that_could_not_be_recorded_is_not_sent(node: Node) -> None:
    node.api.fail("PATCH", STATUS, status(500), cut, status(503))
    node.share("512Mi")
    await node.kubelet.until("the finer list", lambda it: len(it.devices) == 64)
    assert node.share_node.status.memory_unit == "512Mi"


async def test_a_plugin_that_dies_before_it_could_record_a_unit_leaves_ids_with_their_meaning(
    node: Node,
) -> None:
    node.api.fail("PATCH", STATUS, *[status(500)] * 1000)
    node.share("512Mi")
    await node.api.wait_for("attempts to record", lambda: len(node.api.requests("PATCH", STATUS)) >= 4)
    pod = pod_json("a", container(units=16), annotation=annotation({"main": {CARDS[0]: 16}}))
    node.api.put(PODS, pod)
    admitted = await node.kubelet.admit(pod)
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "16384"
    node.api.recover()
    await node.restart_plugin()
    await node.until_registered()
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[0]: 16}})
    assert node.share_node.status.memory_unit == "1Gi"


async def test_a_first_list_waits_until_it_was_recorded(idle_node: Node) -> None:
    idle_node.api.fail("PATCH", STATUS, status(500), status(500))
    await idle_node.start_plugin()
    await idle_node.kubelet.until("the list", lambda it: len(it.devices) == 32)
    assert [card.uuid for card in idle_node.share_node.status.cards] == CARDS


def without_first_units(status: Json) -> Json:
    """As with a CRD of before there was ``firstUnit``."""
    cards = [{key: card[key] for key in card if key != "firstUnit"} for card in status.get("cards", ())]
    return {**status, "cards": cards}


UNEVEN = {"source": "Simulated", "simulated": [{"count": 1, "memory": memory} for memory in ("8Gi", "16Gi")]}


async def a_pod_on_the_second_card_keeps_its_place(node: Node) -> None:
    """So the place of the first one, which is smaller now, follows from nothing but ``firstUnit``."""
    await node.run_pod(pod_json("a", container(units=12), annotation=annotation({"main": {CARDS[1]: 12}})))
    await node.until("the pod", lambda: node.on_cards() == {"a": {CARDS[1]: 12}})
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    await node.stop_plugin()


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(without_first_units, id="places"),
        pytest.param(lambda status: {**status, "memoryUnit": ""}, id="the unit"),
        pytest.param(lambda _: {}, id="everything"),
    ],
)
async def test_what_the_api_server_did_not_keep_is_not_sent(
    node: Node, stored: Callable[[Json], Json]
) -> None:
    await a_pod_on_the_second_card_keeps_its_place(node)
    node.api.kept = stored
    node.share(devices=UNEVEN)
    sent = len(node.kubelet.lists)
    node.api.seen.clear()
    await node.start_plugin()
    await node.api.wait_for("attempts", lambda: len(node.api.requests("PATCH", STATUS)) >= 4)
    assert len(node.kubelet.lists) == sent
    assert node.share_node.status.cards == []
    node.api.kept = lambda status: status
    await node.until_registered()


async def test_places_that_the_api_server_does_not_keep_are_said(node: Node) -> None:
    await a_pod_on_the_second_card_keeps_its_place(node)
    node.api.kept = without_first_units
    node.share(devices=UNEVEN)
    await node.start_plugin()
    await node.until("the word", lambda: node.condition("Registered") == ("False", "LayoutNotRecorded"))
    assert "apply the CRDs" in node.message("Registered")


async def test_a_plugin_that_stops_before_it_has_decided_leaves_the_record(node: Node) -> None:
    record = node.share_node.status.cards
    await node.stop_plugin()
    await node.kubelet.stop()
    node.share(devices=UNEVEN)  # other cards: what is held has to be known first
    await node.start_plugin()
    await node.until("its word", lambda: node.condition("Registered")[0] == "False")
    await asyncio.sleep(0.5)
    await node.stop_plugin()
    assert node.condition("Registered") == ("False", "Stopping")
    assert node.share_node.status.cards == record
    assert node.share_node.status.memory_unit == "1Gi"


async def test_while_it_cannot_be_decided_what_to_offer_the_status_says_why(node: Node) -> None:
    """A plugin that was killed left ``Registered`` True behind."""
    await node.stop_plugin()
    await node.kubelet.stop()
    written = node.api.objects[SHARE_NODES]["", NODE]["status"]
    for condition in written["conditions"]:
        if condition["type"] == "Registered":
            condition.update(status="True", reason="Registered", message="")
    node.share(devices=UNEVEN)
    await node.start_plugin()
    await node.until("the word", lambda: node.condition("Registered") == ("False", "PodResourcesUnreachable"))
    assert "is the kubelet running" in node.message("Registered")
    assert node.agent
    assert "PodResources" in node.agent.readiness_problem()
    await node.kubelet.start()
    await node.until_registered()
    assert node.share_node.status.summary == "0/8 0/16"


async def test_a_change_that_waits_for_the_kubelet_is_said(node: Node) -> None:
    node.kubelet.deaf = True
    node.share("512Mi")
    await node.until(
        "the word",
        lambda: node.condition("UnitChangeBlocked") == ("True", "PodResourcesUnreachable"),
    )
    assert node.share_node.status.memory_unit == "1Gi"
    assert node.condition("Registered") == ("True", "Registered")
    node.kubelet.deaf = False
    await node.until("the new unit", lambda: node.share_node.status.memory_unit == "512Mi")
    await node.until("no block", lambda: node.condition("UnitChangeBlocked") == ("False", "NotBlocked"))


async def test_while_the_pods_of_the_node_cannot_be_listed_the_status_says_so(idle_node: Node) -> None:
    idle_node.api.fail("GET", PODS, *[status(403)] * 1000)
    await idle_node.start_plugin()
    await idle_node.until("the word", lambda: idle_node.condition("Registered") == ("False", "Starting"))
    assert "pods" in idle_node.message("Registered")
    idle_node.api.recover()
    await idle_node.until_registered()


async def test_a_card_that_fails_while_nothing_can_be_recorded_takes_nobody_new(node: Node) -> None:
    node.api.fail("PATCH", STATUS, *[status(500)] * 1000)
    node.simulate("vanish=0 fail=1")
    await node.kubelet.until("no unit is healthy", lambda it: "Healthy" not in it.devices.values())
    assert len(node.kubelet.devices) == 32
    node.api.recover()
    await node.kubelet.until("the list without the card", lambda it: len(it.devices) == 16)


async def test_a_card_that_is_cordoned_while_nothing_can_be_recorded_takes_nobody_new(node: Node) -> None:
    node.api.fail("PATCH", STATUS, *[status(500)] * 1000)
    node.share("512Mi")
    node.annotate(CORDON_ANNOTATION, CARDS[1])
    await node.kubelet.until("the units", lambda it: list(it.devices.values()).count("Unhealthy") == 16)
    node.api.recover()
