"""A pod that follows another one of its name, and of which the kubelet hears before the plugin's watch."""

from tests.component.plugin.test_forgotten_pods import RUNNING, forgetful_restart
from tests.component.plugin.test_kubelet_restart import all_pods
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import Admitted
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.json_object import Json
from gpushare_plugin.devices.simulated import card_uuid

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
    assert [each["GPUSHARE_CARD"] for each in admitted.variables.values()] == [CARDS[1], CARDS[1]]


async def test_what_the_kubelet_had_forgotten_of_the_first_one_is_free(node: Node) -> None:
    await node.run_pod(web("uid-1", 0, main=12))
    await node.run_pod(pod_json("filler", container(units=12)))
    await node.until("both", lambda: node.on_cards() == {"web": {CARDS[0]: 12}, "filler": {CARDS[1]: 12}})
    await forgetful_restart(node, "web")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    admitted = await follow_unseen(node, web("uid-2", 0, main=12))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[0]
