"""Extender and plugin together in mode Mixed: pods of different classes race for a card."""

import asyncio

import pytest
from tests.component.plugin.test_with_extender import extender
from tests.fakes.api_server import PODS
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
from gpushare_extender.extender import Extender

REGISTERING = "not registered with the kubelet yet"
NOT_TOLD_YET = "not known yet whether the pod is bound"
__all__ = ["extender"]

MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource


async def mixed(node: Node, extender: Extender, cards: int) -> None:
    devices = {"source": "Simulated", "simulated": [{"count": cards, "memory": "86Gi"}]}
    node.share(mode="Mixed", slicesPerCard=2, devices=devices)
    await node.until_registered()
    await until_free(node, extender, CARD, cards)


async def until_free(node: Node, extender: Extender, name: str, amount: int) -> None:
    """The extender knows, and so does the kubelet: kube-scheduler asks only for nodes that its allocatable
    lets through."""
    greatest = extender.api.ledger.greatest
    await node.until(f"{amount} of {name}", lambda: greatest[name].get(NODE) == amount)
    await node.kubelet.until(
        "all lists",
        lambda kubelet: all(
            "Healthy" in kubelet.devices_of(resource).values() for resource in (MEMORY, SLICE, CARD)
        ),
    )


async def bind(node: Node, extender: Extender, name: str, *containers: Json) -> str:
    """Returns why it is not bound, or an empty text; tries again while the node registers its resources, and
    while the API server takes long."""
    if ("default", name) not in node.api.objects[PODS]:
        node.api.put(PODS, pod_json(name, *containers, node=""))
    refusal = REGISTERING
    async with asyncio.timeout(30):
        while REGISTERING in refusal or NOT_TOLD_YET in refusal:
            refusal = await extender.api.binder.bind(PodReference("default", name, f"uid-{name}"), NODE)
    return refusal


async def test_of_two_classes_one_gets_the_last_card_and_the_other_when_it_is_free_again(
    node: Node, extender: Extender
) -> None:
    await mixed(node, extender, cards=1)
    assert await bind(node, extender, "memory", container(units=10)) == ""
    refusal = await bind(node, extender, "whole", container(units=1, resource=CARD))
    assert "needs a free card, has 0" in refusal
    await node.kubelet.admit(node.api.pod("memory"))
    await node.until("the status", lambda: node.share_node.status.summary == "memory:10/86")
    assert "has 0" in await bind(node, extender, "whole")
    node.end_pod("memory")
    await until_free(node, extender, CARD, 1)
    assert await bind(node, extender, "whole") == ""
    await node.kubelet.admit(node.api.pod("whole"))
    await node.until("the status", lambda: node.share_node.status.summary == "whole")


@pytest.mark.parametrize("first", ["memory", "slice"])
async def test_a_pod_of_two_classes_runs_on_the_cards_that_were_chosen(
    node: Node, extender: Extender, first: str
) -> None:
    await mixed(node, extender, cards=3)
    containers = [container("m", 10, MEMORY), container("s", 2, SLICE)]
    asked = containers if first == "memory" else containers[::-1]
    assert await bind(node, extender, "both", *asked) == ""
    promised = node.allocation("both")
    admitted = await node.kubelet.admit(node.api.pod("both"))
    assert promised
    for name, cards in promised.containers.items():
        assert admitted.variables[name]["GPUSHARE_CARD"] == ",".join(cards)
    await node.until(
        "the status", lambda: node.share_node.status.summary == "memory:10/86 slices:1/2 slices:1/2"
    )
    assert node.allocation("both") == promised
