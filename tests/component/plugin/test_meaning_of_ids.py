"""IDs in use keep their card, whatever happens to our objects and to the cards that are found."""

from collections.abc import Sequence

import pytest
from tests.fakes.api_server import SHARE_NODES
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import GIB, NODE, annotation, container, pod_json

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.card import PhysicalCard, Reading
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(3)]


def promised(name: str, card: int, units: int) -> Json:
    text = annotation({"main": {CARDS[card]: units}})
    return pod_json(name, container(units=units), annotation=text)


def simulated(*memories: str) -> Json:
    return {"source": "Simulated", "simulated": [{"count": 1, "memory": memory} for memory in memories]}


class Source:
    """Cards in whichever order they are found."""

    def __init__(self, cards: Sequence[PhysicalCard]) -> None:
        self._cards = cards

    async def read(self) -> Reading:
        return Reading(cards=tuple(self._cards))


def find_cards(node: Node, *cards: int) -> None:
    """The node has these cards from now on, in this order."""
    present = [PhysicalCard(uuid=CARDS[card], index=at, memory=16 * GIB) for at, card in enumerate(cards)]
    node.open_source = lambda *_: Source(present)


async def two_pods_run(node: Node) -> None:
    await node.run_pod(promised("a", 0, 12))
    await node.run_pod(promised("b", 1, 12))
    await node.until("the status", lambda: node.share_node.status.summary == "12/16 12/16")


async def delete_policy(node: Node) -> None:
    """The GPUShareNode goes, and the plugin with its DaemonSet."""
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    await node.stop_plugin()
    node.api.patched.clear()


async def start_again(node: Node) -> None:
    await node.start_plugin()
    await node.until_registered()
    await node.until("both pods", lambda: len(node.on_cards()) == 2)


def forget_checkpoint(node: Node) -> None:
    node.kubelet.writes_checkpoint = False
    node.kubelet.checkpoint.unlink(missing_ok=True)


def nothing_moved(node: Node) -> bool:
    """Pods and annotations are where they were, and everything that is held is still offered."""
    held = {unit for pod in node.kubelet.pods.values() for units in pod.held.values() for unit in units}
    return (
        node.on_cards() == {"a": {CARDS[0]: 12}, "b": {CARDS[1]: 12}}
        and not [path for path in node.api.patched if "/pods/" in path]
        and held <= node.kubelet.devices.keys()
    )


@pytest.mark.parametrize("evidence", ["checkpoint", "annotation"])
@pytest.mark.parametrize(
    ("devices", "summary"),
    [
        pytest.param(simulated("28Gi", "16Gi"), "12/16 12/16", id="the first is larger"),
        pytest.param(simulated("8Gi", "16Gi"), "12/16 12/16", id="the first is smaller"),
        pytest.param(simulated("16Gi", "16Gi", "8Gi"), "12/16 12/16 0/8", id="there is one more"),
        pytest.param(simulated("16Gi"), "12/16 12/16(unhealthy)", id="the second is gone"),
    ],
)
async def test_a_policy_applied_anew_with_other_cards_moves_no_unit_in_use(
    node: Node, devices: Json, summary: str, evidence: str
) -> None:
    if evidence == "annotation":
        forget_checkpoint(node)
    await two_pods_run(node)
    await delete_policy(node)
    node.share(devices=devices)
    await start_again(node)
    assert nothing_moved(node)
    if evidence == "checkpoint":
        assert node.share_node.status.summary == summary


async def test_what_is_recorded_before_a_list_is_sent_says_who_has_what(node: Node) -> None:
    await two_pods_run(node)
    await delete_policy(node)
    node.api.forget_history()
    node.share()
    await start_again(node)
    summaries = {share_node["status"].get("summary", "") for share_node in node.api.history(SHARE_NODES)}
    assert summaries == {"", "12/16 12/16"}


async def test_a_policy_applied_anew_fills_no_card_beyond_what_it_has(node: Node) -> None:
    await two_pods_run(node)
    await delete_policy(node)
    node.share(devices=simulated("28Gi", "16Gi"))
    await start_again(node)
    with pytest.raises(AdmissionError, match="asked 8, largest free 4"):
        await node.run_pod(promised("c", 0, 8))
    again = await node.run_pod(promised("d", 1, 4))
    assert again.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("the third pod", lambda: node.on_cards().get("d") == {CARDS[1]: 4})


@pytest.mark.parametrize(
    "found",
    [
        pytest.param((1, 0), id="another order"),
        pytest.param((1,), id="the first is missing"),
        pytest.param((2, 0, 1), id="a new one in front"),
    ],
)
async def test_a_label_toggled_while_cards_are_found_differently_moves_no_unit_in_use(
    node: Node, found: tuple[int, ...]
) -> None:
    await two_pods_run(node)
    await delete_policy(node)
    find_cards(node, *found)
    node.share()
    await start_again(node)
    assert nothing_moved(node)


async def test_a_unit_and_reserved_memory_that_change_with_the_cards_move_no_unit_in_use(node: Node) -> None:
    await two_pods_run(node)
    await delete_policy(node)
    node.share("512Mi", devices=simulated("28Gi", "16Gi"), reservedMemory="2Gi")
    await start_again(node)
    assert nothing_moved(node) or node.share_node.status.summary == "12/14 12/14"
    assert node.share_node.status.memory_unit == "1Gi"
    assert node.condition("UnitChangeBlocked") == ("True", "PodsHoldUnits")


async def test_a_record_that_contradicts_the_checkpoint_is_not_believed(node: Node) -> None:
    """As a plugin of an earlier version wrote it."""
    await two_pods_run(node)
    await swap_recorded_cards(node)
    await node.start_plugin()
    await node.until("both where they are", lambda: nothing_moved(node))


async def swap_recorded_cards(node: Node) -> None:
    """As in a backup of the object from before a card was replaced."""
    await node.stop_plugin()
    written = node.api.objects[SHARE_NODES]["", NODE]["status"]
    for card, uuid in zip(written["cards"], reversed(CARDS[:2]), strict=True):
        card["uuid"] = uuid
    node.api.patched.clear()


@pytest.mark.parametrize(
    "spec", [pytest.param({}, id="as before"), pytest.param({"mode": "Mixed"}, id="a mode not served")]
)
async def test_without_a_checkpoint_nothing_is_offered_while_record_and_annotations_contradict(
    node: Node, spec: Json
) -> None:
    forget_checkpoint(node)
    await two_pods_run(node)
    await swap_recorded_cards(node)
    record = node.share_node.status.cards
    node.share(**spec)
    await node.start_plugin()
    await node.until("the reason", lambda: node.condition("Registered") == ("False", "LayoutUnknown"))
    for pod in ("default/a", "default/b"):
        assert pod in node.message("Registered")
    assert "delete" in node.message("Registered")
    assert node.share_node.status.cards == record
    assert "Healthy" not in node.kubelet.devices.values()
    assert not [path for path in node.api.patched if "/pods/" in path]
    node.share()
    node.end_pod("a")
    node.end_pod("b")
    await node.until_registered()
    assert node.share_node.status.summary == "0/16 0/16"


async def test_a_record_is_not_believed_before_the_kubelet_has_told_who_holds_what(node: Node) -> None:
    """A plugin that starts before its kubelet would find out too late."""
    forget_checkpoint(node)
    await two_pods_run(node)
    await swap_recorded_cards(node)
    await node.kubelet.stop()
    await node.start_plugin()
    await node.until("the word", lambda: "PodResources" in node.message("Registered"))
    await node.kubelet.start()
    await node.until("the names", lambda: "default/a, default/b" in node.message("Registered"))
    assert not [path for path in node.api.patched if "/pods/" in path]


async def test_without_a_checkpoint_a_recorded_unit_that_annotations_contradict_is_not_offered(
    node: Node,
) -> None:
    forget_checkpoint(node)
    await two_pods_run(node)
    await node.stop_plugin()
    written = node.api.objects[SHARE_NODES]["", NODE]["status"]
    written["memoryUnit"] = "512Mi"
    await node.start_plugin()
    await node.until("the reason", lambda: node.condition("Registered") == ("False", "LayoutUnknown"))
    assert not [path for path in node.api.patched if "/pods/" in path]


async def test_nothing_is_offered_while_nobody_knows_what_ids_in_use_mean(node: Node) -> None:
    """No record, no checkpoint, and one pod that came past the scheduler has lost its annotation."""
    forget_checkpoint(node)
    await two_pods_run(node)
    await delete_policy(node)
    bare = node.api.pod("b")
    del bare["metadata"]["annotations"]
    node.api.put("/api/v1/pods", bare)
    node.share()
    await node.start_plugin()
    await node.until("the reason", lambda: node.condition("Registered") == ("False", "LayoutUnknown"))
    assert "default/b; delete them, or wait" in node.message("Registered")
    assert node.condition("LedgerInSync") == ("False", "LayoutUnknown")
    assert node.kubelet.devices == {} or "Healthy" not in node.kubelet.devices.values()
    assert set(node.api.patched) == {f"{SHARE_NODES}/{NODE}/status"}
    node.end_pod("b")
    await node.until_registered()
    assert node.share_node.status.summary == "12/16 0/16"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="absent"),
        pytest.param("", id="empty"),
        pytest.param('{"Data": {"PodDeviceEntries": 7}}', id="another format"),
        pytest.param('{"version": 2}', id="another version"),
    ],
)
async def test_it_lives_without_the_checkpoint_and_says_so(node: Node, content: str | None) -> None:
    forget_checkpoint(node)
    if content is not None:
        node.kubelet.checkpoint.write_text(content)
    await two_pods_run(node)
    await node.until("the word", lambda: "checkpoint cannot be read" in node.message("LedgerInSync"))
    assert node.condition("LedgerInSync") == ("True", "InSync")
    await node.restart_plugin()
    await node.until_registered()
    assert nothing_moved(node)
