"""Units of pods that the API server forgot count until the kubelet lets go; a name is no identity."""

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]


def web(uid: str, card: int, units: int = 12) -> Json:
    text = annotation({"main": {CARDS[card]: units}})
    return pod_json("web-0", container(units=units), annotation=text, uid=uid)


def holders(node: Node) -> set[tuple[str, str, int, bool]]:
    """UID, card, units, and whether the API does not know the pod."""
    cards = node.share_node.status.cards
    return {(pod.uid, card.uuid, pod.units, pod.orphaned) for card in cards for pod in card.pods}


@pytest.fixture(params=["with checkpoint", "without"])
async def one_pod(node: Node, request: pytest.FixtureRequest) -> Node:
    """``web-0`` runs with 12 units of the first card."""
    if request.param == "without":
        node.kubelet.writes_checkpoint = False
        node.kubelet.checkpoint.unlink()
    await node.run_pod(web("first", 0))
    await node.until("the pod", lambda: holders(node) == {("first", CARDS[0], 12, False)})
    return node


@pytest.mark.usefixtures("no_period")
async def test_a_pod_deleted_by_force_counts_until_the_kubelet_lets_go(one_pod: Node) -> None:
    node = one_pod
    node.api.delete(PODS, "web-0", "default")
    await node.until("the mark", lambda: holders(node) == {("first", CARDS[0], 12, True)})
    assert node.share_node.status.summary == "12/16 0/16"
    assert node.share_node.status.units.allocated == 12
    node.kubelet.pods.pop(name_of("web-0"))
    await node.until("the end", lambda: node.share_node.status.summary == "0/16 0/16")


def knows_uid(node: Node, name: str) -> bool:
    """Whether what the kubelet has of the pod was read after it was admitted."""
    assigned = node.agent.state.assigned if node.agent else None
    listed = assigned.pods.get(name_of(name)) if assigned else None
    return bool(assigned and listed and assigned.stored.get(listed.uid))


@pytest.mark.usefixtures("no_period")
async def test_a_pod_whose_init_container_alone_has_units_counts_until_the_kubelet_lets_go(
    node: Node,
) -> None:
    text = annotation({"first": {CARDS[0]: 4}})
    await node.run_pod(
        pod_json("init", container(), inits=(container("first", 4),), annotation=text, uid="init")
    )
    await node.until("the pod", lambda: holders(node) == {("init", CARDS[0], 4, False)})
    # A pod that is listed without devices is known by its UID only if it was still there at that reading.
    await node.until("the checkpoint's entry", lambda: knows_uid(node, "init"))
    node.api.delete(PODS, "init", "default")
    await node.until("the mark", lambda: holders(node) == {("init", CARDS[0], 4, True)})
    node.kubelet.pods.pop(name_of("init"))
    await node.until("the end", lambda: node.share_node.status.summary == "0/16 0/16")


async def test_a_pod_of_the_same_name_is_another_pod(one_pod: Node) -> None:
    node = one_pod
    node.api.delete(PODS, "web-0", "default")
    node.api.put(PODS, web("second", 1, units=12))
    await node.until("the mark", lambda: holders(node) == {("first", CARDS[0], 12, True)})
    assert not [path for path in node.api.patched if "/pods/" in path]
    node.kubelet.pods.pop(name_of("web-0"))
    admitted = await node.kubelet.admit(node.api.pod("web-0"))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("the second", lambda: holders(node) == {("second", CARDS[1], 12, False)})


async def test_a_recreated_pod_is_told_from_its_predecessor_after_a_restart(node: Node) -> None:
    await node.run_pod(web("first", 0))
    await node.stop_plugin()
    node.api.delete(PODS, "web-0", "default")
    node.api.put(PODS, web("second", 1))
    await node.start_plugin()
    await node.until("the mark", lambda: holders(node) == {("first", CARDS[0], 12, True)})
    written = node.allocation("web-0")
    assert written
    assert written.cards in ({}, {CARDS[1]: 12})


async def test_the_next_pod_is_not_given_what_an_orphan_holds(one_pod: Node) -> None:
    node = one_pod
    node.api.delete(PODS, "web-0", "default")
    await node.until("the mark", lambda: holders(node) == {("first", CARDS[0], 12, True)})
    node.kubelet.forgetful = True
    after = await node.run_pod(
        pod_json("next", container(units=8), annotation=annotation({"main": {CARDS[0]: 8}}))
    )
    assert after.variables["main"]["GPUSHARE_CARD"] == CARDS[1]


async def test_a_static_pod_is_known_by_its_mirror(node: Node) -> None:
    mirror = pod_json("static-gpu-1", container(units=4), uid="mirror")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    await node.run_pod(mirror)
    await node.until("the status", lambda: holders(node) == {("mirror", CARDS[0], 4, False)})
    assert node.kubelet.pods[name_of("static-gpu-1")].uid == "hash"
    await node.until("the annotation", lambda: node.allocation("static-gpu-1") is not None)
    await node.restart_plugin()
    await node.until("the annotation read again", lambda: node.knows("static-gpu-1"))
    assert node.agent is not None
    mirrored = node.agent.state.pods[name_of("static-gpu-1")]
    assert (mirrored.uid, mirrored.kubelet_uid, mirrored.annotated_cards) == ("mirror", "hash", (CARDS[0],))
