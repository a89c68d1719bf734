"""The kubelet is sent a list only after what its IDs mean was recorded in the GPUShareNode."""

from tests.fakes.api_server import PODS, SHARE_NODES, cut, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_plugin.devices.simulated import card_uuid

STATUS = f"{SHARE_NODES}/{NODE}/status"
CARDS = [card_uuid(NODE, index) for index in range(2)]


async def test_a_unit_that_could_not_be_recorded_is_not_sent(node: Node) -> None:
    node.api.fail("PATCH", STATUS, status(500), cut, status(503))
    node.share("512Mi")
    await node.kubelet.until("the finer list", lambda it: len(it.devices) == 64)
    assert node.share_node.status.memory_unit == "512Mi"


async def test_a_plugin_that_dies_before_it_could_record_a_unit_leaves_ids_with_their_meaning(
    node: Node,
) -> None:
    node.api.fail("PATCH", STATUS, *[status(500)] * 1000)
    node.share("512Mi")
    await node.api.wait_for("attempts to record", lambda: len(node.api.requests("PATCH", STATUS)) >= 4)
    pod = pod_json("a", container(units=16), annotation=annotation({"main": {CARDS[0]: 16}}))
    node.api.put(PODS, pod)
    admitted = await node.kubelet.admit(pod)
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "16384"
    node.api.recover()
    await node.restart_plugin()
    await node.until_registered()
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[0]: 16}})
    assert node.share_node.status.memory_unit == "1Gi"


async def test_a_first_list_waits_until_it_was_recorded(idle_node: Node) -> None:
    idle_node.api.fail("PATCH", STATUS, status(500), status(500))
    await idle_node.start_plugin()
    await idle_node.kubelet.until("the list", lambda it: len(it.devices) == 32)
    assert [card.uuid for card in idle_node.share_node.status.cards] == CARDS
