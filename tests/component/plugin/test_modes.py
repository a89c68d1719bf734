"""A node in the modes Slices and Exclusive, from the policy to the container and back."""

from typing import Any

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

SLICE, CARD = GPUSHARE.slice_resource, GPUSHARE.card_resource
CARDS = [card_uuid(NODE, index) for index in range(3)]
DEVICES = {
    "source": "Simulated",
    "simulated": [{"count": 2, "memory": "16Gi"}, {"count": 1, "memory": "8Gi"}],
}


async def slices(node: Node) -> None:
    node.share(mode="Slices", slicesPerCard=2, devices=DEVICES)
    await node.kubelet.until("six slices", lambda it: (it.resource, len(it.devices)) == (SLICE, 6))
    await node.until("the status", lambda: node.share_node.status.summary == "0/2 0/2 0/2")
    await node.until_registered()


def slice_pod(name: str, count: int, *cards: int) -> Json:
    """Annotated with ``cards``, unless there are none."""
    allocation = Allocation(
        node=NODE,
        uid=f"uid-{name}",
        at="2026-11-21T10:00:00Z",
        unit="1/2 card",
        resource=ResourceClass.SLICE,
        containers={"main": {CARDS[card]: 1 for card in cards}},
    )
    return pod_json(
        name,
        container(units=count, resource=SLICE),
        annotation=encode_allocation(allocation) if cards else None,
    )


async def test_a_pod_gets_a_slice_of_each_of_the_annotated_cards(node: Node) -> None:
    await slices(node)
    admitted = await node.run_pod(slice_pod("a", 2, 1, 2))
    variables = admitted.variables["main"]
    assert variables["NVIDIA_VISIBLE_DEVICES"] == f"{CARDS[1]},{CARDS[2]}"
    assert variables["GPUSHARE_CARD_INDEX"] == "1,2"
    assert variables["GPUSHARE_MEMORY_MIB"] == "8192,4096"
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 1, CARDS[2]: 1}})
    status = node.share_node.status
    assert (status.summary, status.memory_unit) == ("0/2 1/2 1/2", "1/2 card")
    assert (status.units.total, status.units.allocated) == (6, 2)
    assert (status.memory.total, status.memory.allocated) == ("40Gi", "12Gi")


async def test_a_pod_that_somebody_else_bound_gets_distinct_cards_and_its_annotation(node: Node) -> None:
    await slices(node)
    for name in ("a", "b"):
        await node.run_pod(slice_pod(name, 3))
    with pytest.raises(AdmissionError):
        await node.run_pod(slice_pod("c", 1))
    await node.until("the annotation", lambda: node.allocation("b") is not None)
    held = node.allocation("b")
    assert held
    assert held.containers == {"main": dict.fromkeys(CARDS, 1)}
    assert (held.resource, held.unit) == (ResourceClass.SLICE, "1/2 card")


async def test_slices_left_on_too_few_cards_are_refused(node: Node) -> None:
    await slices(node)
    await node.run_pod(slice_pod("a", 2, 0, 1))
    await node.run_pod(slice_pod("b", 2, 0, 1))
    with pytest.raises(AdmissionError, match="needs 2 cards with a free slice, has 1"):
        await node.run_pod(slice_pod("c", 2))


async def test_a_promise_that_cannot_be_kept_is_set_right(node: Node) -> None:
    await slices(node)
    for name in ("x", "y"):
        await node.run_pod(slice_pod(name, 1, 0))
    await node.run_pod(slice_pod("a", 2, 0, 1))
    expected = {"main": {CARDS[1]: 1, CARDS[2]: 1}}
    await node.until("the truth", lambda: getattr(node.allocation("a"), "containers", None) == expected)


async def test_a_container_whose_slice_the_kubelet_forgot_gets_its_own_again(node: Node) -> None:
    """As when a container restarts after the kubelet lost its checkpoint."""
    await slices(node)
    await node.run_pod(slice_pod("a", 1, 0))
    for number in range(5):
        await node.run_pod(slice_pod(f"other-{number}", 1))
    node.api.put(PODS, {**node.api.pod("a"), "status": {"phase": "Running"}})
    node.kubelet.forget_units(name_of("a"))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    again = await node.kubelet.restart_container(name_of("a"), "main", 1)
    assert again["GPUSHARE_CARD"] == CARDS[0]


async def test_of_several_containers_that_were_forgotten_one_that_restarts_gets_its_own_cards(
    node: Node,
) -> None:
    """The other one runs on its card although the kubelet calls that free."""
    node.share(mode="Exclusive", devices=DEVICES)
    await node.kubelet.until("three cards", lambda it: (it.resource, len(it.devices)) == (CARD, 3))
    await node.until_registered()
    await node.run_pod(pod_json("a", container("one", 1, CARD), container("two", 2, CARD)))
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    before = node.allocation("a")
    assert before
    node.api.put(PODS, {**node.api.pod("a"), "status": {"phase": "Running"}})
    node.kubelet.forget_units(name_of("a"))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    again = await node.kubelet.restart_container(name_of("a"), "two", 2)
    assert set(again["GPUSHARE_CARD"].split(",")) == before.containers["two"].keys()


async def test_init_containers_lend_their_slices(node: Node) -> None:
    await slices(node)
    pod = pod_json(
        "a",
        container("main", 2, SLICE),
        inits=(container("init", 1, SLICE), container("side", 1, SLICE, restartPolicy="Always")),
    )
    admitted = await node.run_pod(pod)
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    held = node.allocation("a")
    assert held
    assert held.held() == dict.fromkeys(CARDS, 1)
    seen = {name: set(each["GPUSHARE_CARD"].split(",")) for name, each in admitted.variables.items()}
    assert seen["side"].isdisjoint(seen["main"])
    assert {name: set(cards) for name, cards in held.containers.items()} == seen


async def test_what_slices_mean_survives_the_plugin_and_its_record(node: Node) -> None:
    await slices(node)
    await node.run_pod(slice_pod("a", 2, 1, 2))
    await node.until("the status", lambda: node.share_node.status.summary == "0/2 1/2 1/2")
    await node.stop_plugin()
    node.api.objects[SHARE_NODES]["", NODE]["status"] = {}
    await node.start_plugin()
    await node.until_registered()
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 1, CARDS[2]: 1}})


async def test_a_change_of_mode_waits_for_the_pods_that_hold_units(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=4)))
    node.share(mode="Slices", slicesPerCard=2)
    blocked = ("True", "PodsHoldUnits")
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == blocked)
    assert "mode Slices is applied when this pod is gone, which holds units of 1Gi" in node.message(
        "UnitChangeBlocked"
    )
    assert (node.kubelet.resource, len(node.kubelet.devices)) == (GPUSHARE.memory_resource, 32)
    await node.restart_plugin()
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == blocked)
    node.end_pod("a")
    await node.kubelet.until("the slices", lambda it: (it.resource, len(it.devices)) == (SLICE, 4))
    await node.until("the status", lambda: node.share_node.status.memory_unit == "1/2 card")
    await node.until_registered()
    node.share(mode="Slices", slicesPerCard=4)
    await node.kubelet.until("smaller slices", lambda it: (it.resource, len(it.devices)) == (SLICE, 8))


async def test_whole_cards(node: Node) -> None:
    node.share(mode="Exclusive", devices=DEVICES)
    await node.kubelet.until("three cards", lambda it: (it.resource, len(it.devices)) == (CARD, 3))
    await node.until("the status", lambda: node.share_node.status.summary == "free free free")
    admitted = await node.run_pod(pod_json("a", container(units=2, resource=CARD)))
    assert admitted.variables["main"]["GPUSHARE_UNITS"] == "2"
    with pytest.raises(AdmissionError, match="Requested: 2, Available: 1"):
        await node.run_pod(pod_json("b", container(units=2, resource=CARD)))
    await node.run_pod(pod_json("c", container(units=1, resource=CARD)))
    await node.until("the status", lambda: node.share_node.status.summary == "whole whole whole")
    assert node.share_node.status.memory_unit == "1 card"
    assert node.share_node.status.memory.allocated == "40Gi"
    for name in ("a", "c"):
        node.end_pod(name)
    await node.until("all given back", lambda: node.share_node.status.summary == "free free free")
    await node.run_pod(pod_json("d", container(units=3, resource=CARD)))
    await node.until("the annotation", lambda: node.allocation("d") is not None)


RESERVED = {**DEVICES, "simulated": [*DEVICES["simulated"], {"count": 1, "memory": "1Gi"}]}


async def reserving(node: Node, mode: str, reserved: str, **spec: Any) -> None:
    """Cards of 16, 16, 8 and 1 GiB; until that is offered in ``mode``."""
    node.share(mode=mode, reservedMemory=reserved, devices=RESERVED, **spec)
    resource = SLICE if mode == "Slices" else CARD
    await node.kubelet.until("the mode", lambda it: it.resource == resource and bool(it.devices))
    await node.until("the status", lambda: len(node.share_node.status.cards) == 4)
    await node.until_registered()


async def test_what_is_reserved_is_taken_off_every_card_before_it_is_cut(node: Node) -> None:
    await reserving(node, "Slices", "1Gi", slicesPerCard=2)
    await node.until("the status", lambda: node.share_node.status.summary == "0/2 0/2 0/2 0/0")
    variables = (await node.run_pod(slice_pod("a", 2, 1, 2))).variables["main"]
    assert variables["GPUSHARE_MEMORY_MIB"] == "7680,3584"
    assert variables["GPUSHARE_CARD_MEMORY_MIB"] == "16384,8192"
    await node.until("the status", lambda: node.share_node.status.summary == "0/2 1/2 1/2 0/0")
    memory = node.share_node.status.memory
    assert (memory.total, memory.allocated) == ("37Gi", "11Gi")
    assert "cards 3 have no more memory than the 1Gi that is reserved" in node.message("CardsHealthy")


async def test_a_whole_card_is_what_is_left_of_it(node: Node) -> None:
    await reserving(node, "Exclusive", "512Mi")
    variables = (await node.run_pod(pod_json("a", container(units=4, resource=CARD)))).variables["main"]
    assert variables["GPUSHARE_MEMORY_MIB"] == "15872,15872,7680,512"


async def test_slices_mean_the_same_after_what_is_reserved_was_changed(node: Node) -> None:
    """Also where nothing but the kubelet remembers what they were."""
    await reserving(node, "Slices", "1Gi", slicesPerCard=2)
    await node.run_pod(slice_pod("a", 2, 1, 2))
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 1, CARDS[2]: 1}})
    await node.stop_plugin()
    node.api.objects[SHARE_NODES]["", NODE]["status"] = {}
    node.share(mode="Slices", reservedMemory="2Gi", devices=RESERVED, slicesPerCard=4)
    await node.start_plugin()
    await node.until_registered()
    status = node.share_node.status
    assert (status.memory_unit, status.summary) == ("1/2 card", "0/2 1/2 1/2 0/0")
    assert node.condition("UnitChangeBlocked") == ("True", "PodsHoldUnits")
    variables = (await node.run_pod(slice_pod("b", 1, 1))).variables["main"]
    assert variables["GPUSHARE_MEMORY_MIB"] == "7168"


async def test_links_and_numa_nodes_decide_which_whole_cards_a_pod_gets(node: Node) -> None:
    """Bound by somebody else: then it is the plugin that chooses."""
    groups = [(0, 0), (0, 1), (1, 0), (1, 0)]
    simulated = [{"count": 1, "memory": "16Gi", "numaNode": numa, "linkGroup": link} for numa, link in groups]
    node.share(mode="Exclusive", devices={"source": "Simulated", "simulated": simulated})
    await node.kubelet.until("four cards", lambda it: (it.resource, len(it.devices)) == (CARD, 4))
    await node.until_registered()
    await node.until("the status", lambda: len(node.share_node.status.cards) == 4)
    assert [(card.numa_node, card.link_group) for card in node.share_node.status.cards] == groups
    await node.restart_plugin()
    variables = (await node.run_pod(pod_json("a", container(units=2, resource=CARD)))).variables["main"]
    assert variables["GPUSHARE_CARD_INDEX"] == "2,3"


async def test_units_of_a_mode_that_ended_are_refused(node: Node) -> None:
    """The kubelet may still ask on the other resource's socket."""
    before = node.kubelet.plugin
    await slices(node)
    node.kubelet.plugin, after = before, node.kubelet.plugin
    node.kubelet.resource = GPUSHARE.memory_resource
    with pytest.raises(AdmissionError, match=r"does not serve gpushare\.io/memory"):
        await node.run_pod(pod_json("a", container(units=1)))
    node.kubelet.plugin = after
