"""Simulated cards fail, recover, vanish and change places by an annotation, while pods hold their units."""

import pytest
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_plugin.devices.simulated.source import card_uuid

FIRST, SECOND = (card_uuid(NODE, index) for index in range(2))
QUICK = {
    "source": "Simulated",
    "simulated": [{"count": 2, "memory": "16Gi"}],
    "health": {"quietSeconds": 1},
}
HEALTHY = ("True", "AllHealthy")


@pytest.fixture
async def node(idle_node: Node) -> Node:
    """Cards return a second after they have recovered."""
    idle_node.share(devices=QUICK)
    await idle_node.start_plugin()
    await idle_node.until_registered()
    return idle_node


async def pod_on_second(node: Node) -> None:
    text = annotation({"main": {SECOND: 4}})
    await node.run_pod(pod_json("a", container(units=4), annotation=text))
    await node.until("the pod", lambda: node.on_cards() == {"a": {SECOND: 4}})


async def until_cards(node: Node, status: str, reason: str) -> None:
    await node.until(reason, lambda: node.condition("CardsHealthy") == (status, reason))


def unhealthy_units(node: Node) -> int:
    return list(node.kubelet.devices.values()).count("Unhealthy")


async def test_a_card_fails_and_recovers_while_its_pod_stays(node: Node) -> None:
    await pod_on_second(node)
    node.simulate("fail=1")
    await until_cards(node, "False", "CardsUnhealthy")
    await node.kubelet.until("the units", lambda _: unhealthy_units(node) == 16)
    assert f"card 1 ({SECOND}): it is simulated to fail" in node.message("CardsHealthy")
    await node.run_pod(pod_json("b", container(units=16)))
    await node.until("the good card", lambda: node.on_cards() == {"a": {SECOND: 4}, "b": {FIRST: 16}})
    with pytest.raises(AdmissionError):
        await node.run_pod(pod_json("c", container(units=1)))
    node.simulate("")
    await until_cards(node, *HEALTHY)
    await node.kubelet.until("the units", lambda _: unhealthy_units(node) == 0)
    await node.run_pod(pod_json("d", container(units=1)))
    await node.until("the card again", lambda: node.on_cards().get("d") == {SECOND: 1})


async def test_a_card_vanishes_and_returns_while_its_pod_stays(node: Node) -> None:
    await pod_on_second(node)
    node.simulate("vanish=0,1")
    await until_cards(node, "False", "CardsUnhealthy")
    assert "the card is gone" in node.message("CardsHealthy")
    assert node.on_cards() == {"a": {SECOND: 4}}
    node.simulate("")
    await until_cards(node, *HEALTHY)
    assert node.share_node.status.summary == "0/16 4/16"


async def test_a_card_that_vanishes_with_nobody_on_it_is_taken_off(node: Node) -> None:
    node.simulate("vanish=1")
    await node.until("one card", lambda: node.share_node.status.summary == "0/16")
    await node.kubelet.until("its units", lambda it: len(it.devices) == 16)


async def test_shifted_indices_move_no_pod_to_another_card(node: Node) -> None:
    await pod_on_second(node)
    node.simulate("shift=1 fail=0")
    await until_cards(node, "False", "CardsUnhealthy")
    assert FIRST in node.message("CardsHealthy")
    assert node.on_cards() == {"a": {SECOND: 4}}
    text = annotation({"main": {SECOND: 4}})
    admitted = await node.run_pod(pod_json("b", container(units=4), annotation=text))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == SECOND


async def test_indices_follow_the_source_while_nobody_holds_anything(node: Node) -> None:
    node.simulate("shift=1")
    await node.until(
        "the order", lambda: [card.uuid for card in node.share_node.status.cards] == [SECOND, FIRST]
    )


async def test_a_driver_that_hangs_and_a_text_that_means_nothing_are_said(node: Node) -> None:
    await pod_on_second(node)
    node.simulate("driver=hung")
    await until_cards(node, "False", "DriverHung")
    await node.kubelet.until("no healthy unit", lambda it: "Healthy" not in it.devices.values())
    node.simulate("explode=1")
    await until_cards(node, "Unknown", "SimulationUnreadable")
    await node.kubelet.until("the units", lambda _: unhealthy_units(node) == 0)
    assert node.on_cards() == {"a": {SECOND: 4}}
