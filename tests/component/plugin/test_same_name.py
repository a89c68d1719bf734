"""A pod that follows another one of its name, and of which the kubelet hears before the plugin's watch."""

import pytest
from tests.component.plugin.test_kubelet_restart import all_pods
from tests.component.plugin.test_lost_assignments import RUNNING, forgetful_restart, must_not_fit, one_card
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import Admitted
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]


def web(uid: str, card: int, **containers: int) -> Json:
    text = annotation({name: {CARDS[card]: units} for name, units in containers.items()})
    asking = (container(name, units) for name, units in containers.items())
    return pod_json("web", *asking, annotation=text, uid=uid) | {"status": RUNNING}


async def follow_unseen(node: Node, second: Json) -> Admitted:
    """The first one ends, and ``second`` comes; no watch tells of it."""
    first = node.api.pod("web")
    first["metadata"]["deletionTimestamp"] = "2026-11-21T11:00:00Z"
    node.api.put(PODS, first)
    await node.until("its end to come", lambda: is_ending(node))
    node.kubelet.pods.pop(name_of("web"))
    second["metadata"]["resourceVersion"] = "100000"
    node.api.objects[PODS]["default", "web"] = second
    return await node.kubelet.admit(second)


def is_ending(node: Node) -> bool:
    return node.agent is not None and node.agent.state.pods[name_of("web")].deleting


async def test_all_its_containers_get_the_card_that_it_was_promised(node: Node) -> None:
    await node.run_pod(
        pod_json("filler", container(units=13), annotation=annotation({"main": {CARDS[0]: 13}}))
    )
    await node.run_pod(web("uid-1", 1, x=2, y=2))
    await node.until("the first one", lambda: "web" in node.on_cards())
    admitted = await follow_unseen(node, web("uid-2", 1, x=2, y=2))
    assert [variable["GPUSHARE_CARD"] for variable in admitted.variables.values()] == [CARDS[1], CARDS[1]]


async def test_what_the_kubelet_had_forgotten_of_the_first_one_is_free(node: Node) -> None:
    await node.run_pod(web("uid-1", 0, main=12))
    await node.run_pod(pod_json("filler", container(units=12)))
    await node.until("both", lambda: node.on_cards() == {"web": {CARDS[0]: 12}, "filler": {CARDS[1]: 12}})
    await forgetful_restart(node, "web")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    admitted = await follow_unseen(node, web("uid-2", 0, main=12))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[0]


async def forgotten_and_followed(node: Node, *, units: int) -> Json:
    """The first one is deleted by force while its kubelet is cut off, runs on, and is listed without units;
    returns the second one, of which the plugin alone has heard."""
    await one_card(node, "Memory")
    await node.run_pod(web("uid-1", 0, main=12))
    await node.until("the first one", lambda: node.on_cards() == {"web": {CARDS[0]: 12}})
    await forgetful_restart(node, "web")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    node.api.delete(PODS, "web", "default")
    second = node.api.put(PODS, pod_json("web", container(units=units), uid="uid-2"))
    await node.until("the second one", lambda: is_followed(node))
    await node.until("the first one as an orphan", lambda: orphans(node) == {("uid-1", 12)})
    return second


def is_followed(node: Node) -> bool:
    """Whether the kubelet was asked since the second one was heard of."""
    state = node.agent.state if node.agent else None
    return state is not None and node.knows("web") and state.assigned.pods[name_of("web")].uid == "uid-2"


def orphans(node: Node) -> set[tuple[str, int]]:
    shares = (pod for card in node.share_node.status.cards for pod in card.pods)
    return {(share.uid, share.units) for share in shares if share.orphaned}


async def test_what_the_kubelet_had_forgotten_of_the_first_one_is_nobody_elses_while_it_runs(
    node: Node,
) -> None:
    await forgotten_and_followed(node, units=12)
    await must_not_fit(node, 8)
    await node.run_pod(pod_json("fits", container(units=4)))
    assert orphans(node) == {("uid-1", 12)}


@pytest.mark.parametrize("aligns", [False, True], ids=["asked which", "taken unasked"])
async def test_and_the_second_ones_when_its_kubelet_admits_that(node: Node, *, aligns: bool) -> None:
    """It lets go of the first one before."""
    second = await forgotten_and_followed(node, units=16)
    node.kubelet.aligns = aligns
    node.kubelet.pods.pop(name_of("web"))
    admitted = await node.kubelet.admit(second)
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[0]
    await node.until("its units alone", lambda: node.on_cards() == {"web": {CARDS[0]: 16}})
    assert orphans(node) == set()


async def test_they_are_free_when_the_second_one_is_gone_too(node: Node) -> None:
    await forgotten_and_followed(node, units=12)
    node.end_pod("web")
    await node.until("the end of both", lambda: node.on_cards() == {})
    await node.run_pod(pod_json("next", container(units=16)))
