"""A card falls sick under a pod, and returns by proof: with kubelet, extender and API server."""

from typing import Any

import pytest
from tests.component.plugin.test_mixed_with_extender import bind
from tests.component.plugin.test_with_extender import extender
from tests.fakes.api_server import EVENTS, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_core.api.names import CLEAR_FAULT_ANNOTATION
from gpushare_core.api.share_node import CardFault
from gpushare_core.text.json_object import Json
from gpushare_extender.extender import Extender
from gpushare_plugin.devices.simulated.source import card_uuid

__all__ = ["extender"]

FIRST, SECOND = (card_uuid(NODE, index) for index in range(2))
DEVICES: dict[str, Any] = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}


@pytest.fixture
async def node(idle_node: Node) -> Node:
    """Sick cards have to be quiet for 2 s."""
    idle_node.share(devices={**DEVICES, "health": {"quietSeconds": 2}})
    await idle_node.start_plugin()
    await idle_node.until_registered()
    text = annotation({"main": {SECOND: 4}})
    await idle_node.run_pod(pod_json("a", container(units=4), annotation=text))
    await idle_node.until("the pod", lambda: idle_node.on_cards() == {"a": {SECOND: 4}})
    return idle_node


def fault(node: Node) -> CardFault:
    (found,) = node.share_node.status.faults
    return found


async def until_cards(node: Node, status: str, reason: str) -> None:
    await node.until(reason, lambda: node.condition("CardsHealthy") == (status, reason))


async def until_sick(node: Node) -> None:
    await until_cards(node, "False", "CardsUnhealthy")
    await node.kubelet.until("the units", lambda it: list(it.devices.values()).count("Unhealthy") == 16)


async def test_an_xid_under_a_pod_closes_the_card_until_it_was_quiet(node: Node, extender: Extender) -> None:
    lists = len(node.kubelet.lists)
    node.simulate("xid=1:79")
    await until_sick(node)
    assert len(node.kubelet.lists) == lists + 1
    assert f"card 1 ({SECOND}): Xid 79, it has fallen off the bus" in node.message("CardsHealthy")
    assert node.on_cards() == {"a": {SECOND: 4}}
    assert await bind(node, extender, "c", container(units=16)) == ""
    admitted = await node.kubelet.admit(node.api.pod("c"))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == FIRST
    await until_cards(node, "True", "AllHealthy")
    assert (fault(node).reason, fault(node).cleared_by) == ("Xid79", "QuietTime")
    assert await bind(node, extender, "d", container(units=12)) == ""


def events(node: Node) -> list[Json]:
    return list(node.api.objects[EVENTS].values())


async def test_pods_of_a_sick_card_are_told_once_for_each_fault(node: Node) -> None:
    text = annotation({"x": {SECOND: 2}, "y": {SECOND: 1}})
    await node.run_pod(pod_json("b", container("x", 2), container("y", 1), annotation=text))
    await node.run_pod(pod_json("c", container(units=1), annotation=annotation({"main": {FIRST: 1}})))
    await node.until("the pods", lambda: set(node.on_cards()) == {"a", "b", "c"})
    node.simulate("xid=1:79")
    await until_sick(node)
    await node.until("the Events", lambda: len(events(node)) == 2)
    first, second = events(node)
    assert {event["regarding"]["name"] for event in (first, second)} == {"a", "b"}
    assert (first["type"], first["reason"], first["reportingInstance"]) == ("Warning", "CardUnhealthy", NODE)
    assert f"card 1 ({SECOND}) of this pod is sick: Xid 79" in first["note"]
    node.simulate("xid=1:79,1:48")
    await node.until("the other Xid", lambda: fault(node).reason == "Xid48")
    await node.restart_plugin()
    await until_cards(node, "True", "AllHealthy")
    assert len(events(node)) == 2
    node.simulate("xid=1:119")
    await node.until("the next fault", lambda: fault(node).relapses == 1)
    await node.until("its Events", lambda: len(events(node)) == 4)


async def test_an_event_that_is_refused_stops_nothing(node: Node) -> None:
    node.api.fail("POST", "/apis/events.k8s.io/v1/namespaces/default/events", status(403))
    node.simulate("xid=1:79")
    await until_sick(node)
    await until_cards(node, "True", "AllHealthy")


async def test_an_xid_of_an_application_closes_no_card(node: Node) -> None:
    node.simulate("xid=1:31")
    await node.until("a round", lambda: node.agent is not None and node.agent.state.health is not None)
    node.simulate("xid=1:31,1:48")
    await until_sick(node)
    assert fault(node).reason == "Xid48"


async def test_a_restart_brings_no_sick_card_back(node: Node) -> None:
    node.share(devices={**DEVICES, "health": {"quietSeconds": 600}})
    node.simulate("xid=1:79")
    await until_sick(node)
    before = fault(node)
    await node.restart_plugin()
    await node.until_registered()
    await node.kubelet.until("its devices", lambda it: "Healthy" in it.devices.values())
    assert list(node.kubelet.devices.values()).count("Unhealthy") == 16
    assert fault(node) == before
    node.annotate(CLEAR_FAULT_ANNOTATION, f"{SECOND}@{before.last_seen}")
    await until_cards(node, "True", "AllHealthy")
    assert fault(node).cleared_by == "Administrator"


async def test_a_repair_that_is_due_closes_the_card_until_it_is_done(node: Node) -> None:
    node.simulate("repair=1")
    await until_sick(node)
    assert (fault(node).reason, fault(node).quiet_since) == ("RecoveryActionDue", "")
    node.simulate("")
    await until_cards(node, "True", "AllHealthy")


async def test_a_card_that_vanishes_under_a_pod_is_named(node: Node) -> None:
    node.simulate("vanish=1")
    await until_sick(node)
    assert fault(node).reason == "CardGone"
    node.simulate("")
    await until_cards(node, "True", "AllHealthy")
