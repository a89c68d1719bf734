"""A node in mode Mixed as its kubelet sees it: three resources, a card in use in the list of one of them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, name_of, pod_json

from gpushare_core.api.share_node import SimulatedCards
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.card import Reading
from gpushare_plugin.devices.simulated.source import simulate

MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource


def devices(count: int) -> Json:
    return {"source": "Simulated", "simulated": [{"count": count, "memory": "86Gi"}]}


def offered(node: Node) -> tuple[int, ...]:
    """Cards, slices and units of memory that the kubelet has."""
    return tuple(len(node.kubelet.offered.get(name, ())) for name in (CARD, SLICE, MEMORY))


async def until_offered(node: Node, *expected: int) -> None:
    await node.until(f"{expected}, not {offered(node)}", lambda: offered(node) == expected)


async def mixed(node: Node, cards: int = 4) -> None:
    node.share(mode="Mixed", slicesPerCard=2, devices=devices(cards))
    await until_offered(node, cards, 2 * cards, 86 * cards)
    await node.until_registered()


def asking(name: str, amount: int, resource: str) -> Json:
    return pod_json(name, container(units=amount, resource=resource))


async def test_the_published_table(node: Node) -> None:
    await mixed(node)
    await node.run_pod(asking("s", 2, SLICE))
    await until_offered(node, 2, 8, 172)
    await node.run_pod(asking("m", 10, MEMORY))
    await until_offered(node, 1, 6, 172)
    await node.run_pod(asking("c", 1, CARD))
    await until_offered(node, 1, 4, 86)
    await node.until(
        "the status", lambda: node.share_node.status.summary == "slices:1/2 slices:1/2 memory:10/86 whole"
    )
    status = node.share_node.status
    assert [card.lock for card in status.cards] == ["Slices", "Slices", "Memory", "Exclusive"]
    totals = {resource.resource: (resource.total, resource.allocated) for resource in status.resources}
    assert totals == {"memory": (86, 10), "slice": (4, 2), "card": (1, 1)}
    node.end_pod("c")
    await until_offered(node, 1, 6, 172)
    node.end_pod("m")
    await until_offered(node, 2, 8, 172)
    node.end_pod("s")
    await until_offered(node, 4, 8, 344)
    await node.until("the status", lambda: node.share_node.status.summary == "free free free free")


async def test_units_that_an_init_container_lends_beside_another_class_are_no_alarm(node: Node) -> None:
    await mixed(node, cards=2)
    both = (container("main", 60, MEMORY), container("whole", 1, CARD))
    await node.run_pod(pod_json("both", *both, inits=(container("first", 60, MEMORY),)))
    await node.until("the status", lambda: node.share_node.status.summary == "memory:60/86 whole")
    await node.run_pod(asking("next", 1, MEMORY))  # all is audited anew
    await node.until("the next one", lambda: node.share_node.status.summary == "memory:61/86 whole")
    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    conditions = [it["status"].get("conditions", []) for it in node.api.history(SHARE_NODES)]
    assert "OverCommitted" not in {condition["reason"] for found in conditions for condition in found}


async def test_of_two_classes_that_race_for_the_last_card_one_is_refused(node: Node) -> None:
    """Before the lists have followed the first of them; on a busy machine they may have."""
    followed = "Requested: 1, Available: 0"
    await mixed(node, cards=1)
    await node.run_pod(asking("m", 10, MEMORY))
    no_slice = f"insufficient GPU slices: needs a card with a free slice, has 0|{followed}"
    with pytest.raises(AdmissionError, match=no_slice):
        await node.run_pod(asking("s", 1, SLICE))
    no_card = f"insufficient GPU cards: needs a free card, has 0|{followed}"
    with pytest.raises(AdmissionError, match=no_card):
        await node.run_pod(asking("c", 1, CARD))
    await until_offered(node, 0, 0, 86)


async def test_an_allocation_on_a_card_that_serves_another_class_is_refused(node: Node) -> None:
    """As when a kubelet does not ask which units to take."""
    await mixed(node, cards=1)
    slices = [*node.kubelet.offered[SLICE]]
    await node.run_pod(asking("m", 10, MEMORY))
    with pytest.raises(AdmissionError, match="serves memory now"):
        await node.kubelet.allocate(SLICE, slices[:1])


async def test_a_pod_of_two_classes_has_a_true_environment_in_each_container(node: Node) -> None:
    await mixed(node)
    admitted = await node.run_pod(pod_json("a", container("main", 10, MEMORY), container("side", 2, SLICE)))
    main, side = (admitted.variables[name] for name in ("main", "side"))
    assert (main["GPUSHARE_UNITS"], main["GPUSHARE_UNIT"]) == ("10", "1Gi")
    assert (side["GPUSHARE_UNITS"], side["GPUSHARE_UNIT"]) == ("2", "1/2 card")
    assert main["GPUSHARE_CARD"] not in side["GPUSHARE_CARD"]
    await until_offered(node, 1, 6, 172)
    await node.until("the annotation", lambda: node.allocation("a") is not None)
    written = node.allocation("a")
    assert written
    told = {name: sorted(cards) for name, cards in written.containers.items()}
    assert told == {
        "main": [main["GPUSHARE_CARD"]],
        "side": sorted(side["GPUSHARE_CARD"].split(",")),
    }
    units = {card: written.unit_of(card) for card in written.held()}
    assert units == {
        main["GPUSHARE_CARD"]: "1Gi",
        **dict.fromkeys(side["GPUSHARE_CARD"].split(","), "1/2 card"),
    }


async def test_a_container_of_two_classes_is_refused(node: Node) -> None:
    await mixed(node)
    crowded = container("main", 10, MEMORY)
    crowded["resources"]["limits"][SLICE] = "1"
    with pytest.raises(AdmissionError, match="ask for each of them in a container of its own"):
        await node.run_pod(pod_json("a", crowded))


async def test_locks_follow_from_the_kubelet_after_a_restart(node: Node) -> None:
    await mixed(node)
    await node.run_pod(asking("s", 2, SLICE))
    await node.run_pod(asking("m", 10, MEMORY))
    await until_offered(node, 1, 6, 172)
    await node.stop_plugin()
    await node.start_plugin()
    await until_offered(node, 1, 6, 172)
    node.end_pod("s")
    await until_offered(node, 3, 6, 344)


async def test_a_card_of_which_the_kubelet_forgot_everything_serves_no_other_class(node: Node) -> None:
    await mixed(node, cards=1)
    await node.run_pod(asking("m", 10, MEMORY))
    await node.until("the annotation", lambda: node.allocation("m") is not None)
    running = {**node.api.pod("m"), "status": {"phase": "Running"}}
    node.api.put(PODS, running)
    node.kubelet.forget_units(name_of("m"))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    with pytest.raises(AdmissionError):
        await node.run_pod(asking("s", 1, SLICE))
    assert offered(node) == (0, 0, 86)


async def test_a_change_of_mode_waits_for_every_class(node: Node) -> None:
    await mixed(node)
    await node.run_pod(asking("s", 2, SLICE))
    await node.run_pod(asking("m", 10, MEMORY))
    node.share(devices=devices(4))
    word = "mode Memory is applied when these 2 pods are gone, which hold units"
    await node.until("the word", lambda: word in node.message("UnitChangeBlocked"))
    node.end_pod("s")
    await until_offered(node, 3, 6, 344)
    node.end_pod("m")
    await until_offered(node, 0, 0, 344)
    assert node.share_node.status.memory_unit == "1Gi"


async def test_a_policy_that_is_applied_anew_knows_what_is_held(node: Node) -> None:
    """The GPUShareNode is gone, and with it what was recorded; the kubelet's checkpoint is there."""
    await mixed(node)
    await node.run_pod(asking("s", 2, SLICE))
    await node.run_pod(asking("m", 10, MEMORY))
    await until_offered(node, 1, 6, 172)
    await node.stop_plugin()
    node.api.delete(SHARE_NODES, NODE)
    node.share(mode="Mixed", slicesPerCard=2, devices=devices(4))
    await node.start_plugin()
    await until_offered(node, 1, 6, 172)
    await node.until(
        "the status", lambda: node.share_node.status.summary == "slices:1/2 slices:1/2 memory:10/86 free"
    )


async def test_pods_of_all_classes_at_once_never_share_a_card(node: Node) -> None:
    await mixed(node)
    asked = [("s1", 2, SLICE), ("m1", 50, MEMORY), ("c1", 1, CARD), ("m2", 50, MEMORY), ("s2", 1, SLICE)]
    pods = (node.run_pod(asking(*arguments)) for arguments in asked)
    results = await asyncio.gather(*pods, return_exceptions=True)
    assert any(not isinstance(result, BaseException) for result in results)
    cards: dict[str, set[str]] = {}
    for pod in node.kubelet.pods.values():
        for name, variables in pod.variables.items():
            for card in variables["GPUSHARE_CARD"].split(","):
                cards.setdefault(card, set()).add(pod.resources[name])
    assert all(len(resources) == 1 for resources in cards.values())


class FailingSource:
    """Simulated cards, the first of which can fail."""

    def __init__(self) -> None:
        self.healthy = True

    async def read(self) -> Reading:
        first, *others = simulate(NODE, [SimulatedCards(count=2, memory="86Gi")])
        return Reading(cards=(replace(first, healthy=self.healthy), *others))


async def test_a_card_that_fails_stays_with_its_class_until_it_is_empty(node: Node) -> None:
    source = FailingSource()
    node.open_source = lambda *_: source
    await mixed(node, cards=2)
    await node.run_pod(asking("m", 10, MEMORY))
    await until_offered(node, 1, 2, 172)
    source.healthy = False
    assert node.agent
    node.agent.state.changed.set()
    await node.until("86 units that are not healthy", lambda: unhealthy(node) == (0, 0, 86))
    node.end_pod("m")
    await until_offered(node, 2, 4, 172)
    assert unhealthy(node) == (1, 2, 86)
    source.healthy = True
    node.agent.state.changed.set()
    await node.until("healthy cards", lambda: unhealthy(node) == (0, 0, 0))


def unhealthy(node: Node) -> tuple[int, ...]:
    """Cards, slices and units of memory that the kubelet has and gives to nobody."""
    devices = (node.kubelet.offered.get(name, {}) for name in (CARD, SLICE, MEMORY))
    return tuple(sum(health != "Healthy" for health in device.values()) for device in devices)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"unit": "3Gi", "slicesPerCard": 2}, id="another unit of memory"),
        pytest.param({"slicesPerCard": 4}, id="other slices"),
        pytest.param({"unit": "3Gi", "slicesPerCard": 4}, id="both"),
    ],
)
async def test_what_each_class_means_survives_the_record_while_another_unit_is_asked_for(
    node: Node, asked: dict[str, Any]
) -> None:
    """As when the Node was deleted: a pod of one class says nothing of what those of others hold."""
    await mixed(node, cards=3)
    for name, amount, resource in (("whole", 1, CARD), ("half", 1, SLICE), ("memory", 10, MEMORY)):
        await node.run_pod(asking(name, amount, resource))
    await node.until("the status", lambda: len(node.on_cards()) == 3)
    before, unit = node.on_cards(), node.share_node.status.memory_unit
    await node.stop_plugin()
    node.api.objects[SHARE_NODES]["", NODE]["status"] = {}
    node.share(mode="Mixed", devices=devices(3), **asked)
    await node.start_plugin()
    await node.until_registered()
    await node.until("the status", lambda: node.on_cards() == before)
    assert node.share_node.status.memory_unit == unit
    assert node.condition("UnitChangeBlocked") == ("True", "PodsHoldUnits")
    assert node.condition("LedgerInSync")[0] == "True"
