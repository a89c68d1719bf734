"""What a source of devices cannot tell: pods keep what they have, and the rest is said."""

from dataclasses import replace

import pytest
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, pod_json

from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import SimulatedCards
from gpushare_plugin.devices.card import LeftOutCard, Reading
from gpushare_plugin.devices.simulated.source import simulate

CARDS = tuple(simulate(NODE, [SimulatedCards(count=2, memory="16Gi")]))
ABSENT = Problem("DriverAbsent", "there is no driver: install it")
HUNG = Problem("DriverHung", "the driver does not answer: reboot the node")


class Source:
    """Tells what a test says."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    async def read(self) -> Reading:
        return self.reading


def tell(node: Node, source: Source, reading: Reading) -> None:
    source.reading = reading
    assert node.agent
    node.agent.state.changed.set()


def registered(node: Node) -> tuple[str, str]:
    return node.condition("Registered")


async def test_a_source_that_tells_nothing_from_the_start_is_said_until_it_does(idle_node: Node) -> None:
    source = Source(Reading(problem=HUNG))
    idle_node.open_source = lambda *_: source
    await idle_node.start_plugin()
    await idle_node.until("the reason", lambda: registered(idle_node) == ("False", "DriverHung"))
    assert idle_node.message("Registered").endswith(HUNG.message)
    assert idle_node.kubelet.devices == {}
    tell(idle_node, source, Reading(cards=CARDS))
    await idle_node.until_registered()


async def test_after_a_restart_pods_stay_booked_while_the_source_tells_nothing(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the pod", lambda: "a" in node.on_cards())
    await node.stop_plugin()
    before = node.share_node.status.cards
    source = Source(Reading(problem=HUNG))
    node.open_source = lambda *_: source
    await node.start_plugin()
    await node.until("the reason", lambda: registered(node) == ("False", "DriverHung"))
    assert node.share_node.status.cards == before
    assert node.allocation("a")
    tell(node, source, Reading(cards=CARDS))
    await node.until_registered()
    assert node.share_node.status.cards == before


async def test_cards_of_a_driver_that_hangs_get_nobody_new_until_it_answers(node: Node) -> None:
    source = Source(Reading(cards=CARDS))
    node.open_source = lambda *_: source
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the pod", lambda: "a" in node.on_cards())
    before = node.on_cards()
    sick = tuple(replace(card, healthy=False, reason=HUNG.message) for card in CARDS)
    tell(node, source, Reading(cards=sick, problem=HUNG))
    await node.until("the reason", lambda: node.condition("CardsHealthy") == ("False", "DriverHung"))
    await node.kubelet.until("no healthy unit", lambda it: "Healthy" not in it.devices.values())
    assert len(node.kubelet.devices) == 32
    assert node.on_cards() == before
    tell(node, source, Reading(cards=CARDS))
    await node.until("healthy cards", lambda: node.condition("CardsHealthy") == ("True", "AllHealthy"))
    assert node.on_cards() == before


async def test_another_source_that_tells_nothing_offers_no_cards_of_the_one_before(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the pod", lambda: "a" in node.on_cards())
    before = node.on_cards()
    source = Source(Reading(problem=ABSENT))
    node.open_source = lambda *_: source
    node.share(devices={"source": "NVML"})
    await node.kubelet.until("no healthy unit", lambda it: "Healthy" not in it.devices.values())
    assert len(node.kubelet.devices) == 32, "the pod's units stay in the kubelet's records"
    await node.until("the reason", lambda: node.condition("CardsHealthy") == ("False", "DriverAbsent"))
    assert node.on_cards() == before
    with pytest.raises(AdmissionError):
        await node.run_pod(pod_json("b", container(units=4)))
    tell(node, source, Reading(cards=CARDS))
    await node.until("healthy cards", lambda: node.condition("CardsHealthy") == ("True", "AllHealthy"))
    await node.kubelet.until("healthy units", lambda it: "Unhealthy" not in it.devices.values())
    assert node.on_cards() == before


async def test_a_node_that_is_switched_off_does_not_ask_its_source(node: Node) -> None:
    source = Source(Reading(problem=HUNG))
    node.open_source = lambda *_: source
    node.share(mode="Off")
    await node.until("the word", lambda: registered(node) == ("False", "NotShared"))


async def test_a_card_left_out_is_named_and_the_others_serve(node: Node) -> None:
    mig = LeftOutCard(index=1, uuid=CARDS[1].uuid, reason="MIG is enabled on it")
    source = Source(Reading(cards=CARDS[:1], left_out=(mig,)))
    node.open_source = lambda *_: source
    tell(node, source, source.reading)
    await node.until("the word", lambda: node.condition("CardsHealthy") == ("True", "CardsLeftOut"))
    assert node.message("CardsHealthy") == f"card 1 ({mig.uuid}) is left out: MIG is enabled on it"
    assert node.share_node.status.summary == "0/16"
