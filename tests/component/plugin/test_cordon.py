"""A card that people have cordoned: pods on it stay, nobody new comes, in every mode."""

from typing import Any

import pytest
from tests.component.plugin.test_mixed_with_extender import bind
from tests.component.plugin.test_with_extender import extender
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, ids, pod_json

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.extender import Extender
from gpushare_plugin.devices.simulated.source import card_uuid

__all__ = ["extender"]

FIRST, SECOND = (card_uuid(NODE, index) for index in range(2))
MODES: list[Any] = [
    pytest.param({"mode": "Memory"}, GPUSHARE.memory_resource, 16, id="Memory"),
    pytest.param({"mode": "Slices", "slicesPerCard": 2}, GPUSHARE.slice_resource, 1, id="Slices"),
    pytest.param({"mode": "Exclusive"}, GPUSHARE.card_resource, 1, id="Exclusive"),
    pytest.param({"mode": "Mixed", "slicesPerCard": 2}, GPUSHARE.slice_resource, 1, id="Mixed"),
]


def healthy_units(node: Node) -> int:
    return list(node.kubelet.devices.values()).count("Healthy")


async def cordon(node: Node, words: str) -> None:
    node.annotate(CORDON_ANNOTATION, words)
    expected = ("True", "Cordoned") if words else ("False", "NoneCordoned")
    await node.until("the condition", lambda: node.condition("CardsCordoned") == expected)


async def until_open(node: Node, ledger: Ledger, uuid: str, *, is_open: bool) -> None:
    def is_reported() -> bool:
        sums = ledger.node(NODE)
        cards = sums.cards() if sums else ()
        return any(card.uuid == uuid and card.healthy == is_open for card in cards)

    await node.until(f"{uuid} in the ledger", is_reported)


async def test_pods_on_the_card_stay_and_nobody_new_comes(node: Node) -> None:
    text = annotation({"main": {SECOND: 4}})
    await node.run_pod(pod_json("a", container(units=4), annotation=text))
    await node.until("the pod", lambda: node.on_cards() == {"a": {SECOND: 4}})
    await cordon(node, "1")
    assert [card.cordoned for card in node.share_node.status.cards] == [False, True]
    assert node.share_node.status.summary == "0/16 4/16(cordoned)"
    await node.kubelet.until("the units", lambda _: healthy_units(node) == 20)
    await node.run_pod(pod_json("b", container(units=4), annotation=text))
    await node.until("the other card", lambda: node.on_cards().get("b") == {FIRST: 4})
    with pytest.raises(AdmissionError):
        await node.run_pod(pod_json("c", container(units=13)))
    node.end_pod("a")
    await node.kubelet.until("no unit of it is healthy", lambda _: healthy_units(node) == 16)
    await cordon(node, "")
    await node.kubelet.until("the units", lambda _: healthy_units(node) == 32)
    await node.run_pod(pod_json("d", container(units=16)))
    await node.until("the card again", lambda: node.on_cards().get("d") == {SECOND: 16})


async def test_a_cordon_outlives_the_plugin(node: Node) -> None:
    await cordon(node, SECOND)
    await node.restart_plugin()
    assert healthy_units(node) == 16
    await node.until_registered()
    assert node.condition("CardsCordoned") == ("True", "Cordoned")


async def test_words_that_are_no_card_are_said_and_cordon_nothing(node: Node) -> None:
    node.annotate(CORDON_ANNOTATION, "GPU-nobody 7")
    await node.until("the word", lambda: node.condition("CardsCordoned") == ("False", "UnknownCards"))
    assert "'GPU-nobody', '7'" in node.message("CardsCordoned")
    assert healthy_units(node) == 32


@pytest.mark.parametrize(("spec", "resource", "amount"), MODES)
async def test_the_extender_places_nobody_on_it_in_any_mode(
    node: Node, extender: Extender, spec: dict[str, Any], resource: str, amount: int
) -> None:
    node.share(**spec)
    await node.until("the mode", lambda: node.share_node.spec.mode == spec["mode"])
    await cordon(node, "0")
    ledger = extender.api.ledger
    await until_open(node, ledger, FIRST, is_open=False)
    await node.kubelet.until("its list", lambda it: "Healthy" in it.devices_of(resource).values())
    assert await bind(node, extender, "a", container(units=amount, resource=resource)) == ""
    admitted = await node.kubelet.admit(node.api.pod("a"))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == SECOND
    await cordon(node, "0,1")
    await until_open(node, ledger, SECOND, is_open=False)
    refusal = await bind(node, extender, "b", container(units=amount, resource=resource))
    assert "node(s) whose GPU cards are cordoned" in refusal
    await node.until("the pod stays", lambda: list(node.on_cards()) == ["a"])


async def test_a_kubelet_that_has_not_got_the_list_yet_puts_nobody_on_the_card(node: Node) -> None:
    """Nor where it does not ask which units to take: it does not when it needs all that it calls free."""
    text = annotation({"first": {SECOND: 4}})
    await node.run_pod(pod_json("a", container(), inits=(container("first", 4),), annotation=text))
    await node.until("the pod", lambda: node.on_cards() == {"a": {SECOND: 4}})
    held, free = ids(*range(16, 20)), ids(*range(20, 32))
    await cordon(node, SECOND)
    with pytest.raises(AdmissionError, match="takes no new pod"):
        await node.kubelet.allocate(GPUSHARE.memory_resource, free)
    await node.kubelet.allocate(GPUSHARE.memory_resource, held)  # lent to the next container
    await node.kubelet.allocate(GPUSHARE.memory_resource, ids(*range(16)))
