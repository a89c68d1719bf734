"""A pod that was admitted is not taken for the one that is being admitted, whatever is listed of it."""

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]
EARLY, LATE = "2026-11-21T10:00:00Z", "2026-11-21T10:00:09Z"


def staged(name: str, card: int, at: str) -> Json:
    """Its ordinary init container alone asks for units."""
    text = annotation({"first": {CARDS[card]: 4}}, at=at)
    return pod_json(name, container(), inits=(container("first", 4),), annotation=text)


def plain(name: str, card: int, at: str, units: int = 4) -> Json:
    text = annotation({"main": {CARDS[card]: units}}, at=at)
    return pod_json(name, container(units=units), annotation=text)


def without_checkpoint(node: Node) -> None:
    node.kubelet.writes_checkpoint = False
    node.kubelet.checkpoint.unlink()


@pytest.mark.parametrize("evidence", ["checkpoint", "own record"])
async def test_a_pod_whose_init_container_alone_has_units_was_admitted(node: Node, evidence: str) -> None:
    if evidence == "own record":
        without_checkpoint(node)
    first = await node.run_pod(staged("first", 1, EARLY))
    second = await node.run_pod(staged("second", 0, LATE))
    assert first.variables["first"]["GPUSHARE_CARD"] == CARDS[1]
    assert second.variables["first"]["GPUSHARE_CARD"] == CARDS[0]
    await node.until("the status", lambda: node.share_node.status.summary == "4/16 4/16")


@pytest.mark.parametrize(
    "units",
    [
        pytest.param((4, 4), id="equal"),
        pytest.param((4, 2), id="the second needs less"),
        pytest.param((2, 4), id="the second needs more"),
    ],
)
async def test_a_pod_with_two_init_containers_was_admitted(node: Node, units: tuple[int, int]) -> None:
    without_checkpoint(node)
    inits = (container("x", units[0]), container("y", units[1]))
    text = annotation({"x": {CARDS[1]: units[0]}, "y": {CARDS[1]: units[1]}}, cards={CARDS[1]: 4}, at=EARLY)
    await node.run_pod(pod_json("first", container(), inits=inits, annotation=text))
    second = await node.run_pod(staged("second", 0, LATE))
    assert second.variables["first"]["GPUSHARE_CARD"] == CARDS[0]


async def test_it_was_admitted_also_before_a_restart(node: Node) -> None:
    await node.run_pod(staged("first", 1, EARLY))
    await node.restart_plugin()
    second = await node.run_pod(staged("second", 0, LATE))
    assert second.variables["first"]["GPUSHARE_CARD"] == CARDS[0]


@pytest.mark.parametrize("evidence", ["checkpoint", "own record"])
async def test_a_pod_that_nobody_knows_is_not_taken_for_one_that_was_admitted(
    node: Node, evidence: str
) -> None:
    if evidence == "own record":
        without_checkpoint(node)
    await node.run_pod(staged("first", 1, EARLY))
    await node.run_pod(plain("full", 1, LATE, units=10))
    unknown = await node.kubelet.admit(staged("unknown", 0, LATE))
    assert unknown.variables["first"]["GPUSHARE_CARD"] == CARDS[0]


async def test_it_was_admitted_before_a_restart_when_its_init_container_runs_already(node: Node) -> None:
    without_checkpoint(node)
    await node.run_pod(staged("first", 1, EARLY))
    acknowledged = {"phase": "Pending", "startTime": "2026-11-21T10:00:01Z"}
    node.api.put(PODS, {**node.api.pod("first"), "status": acknowledged})
    await node.restart_plugin()
    second = await node.run_pod(staged("second", 0, LATE))
    assert second.variables["first"]["GPUSHARE_CARD"] == CARDS[0]


async def test_a_static_pod_that_has_its_units_was_admitted(node: Node) -> None:
    mirror = staged("static", 1, EARLY)
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "hash"
    await node.run_pod(mirror)
    await node.restart_plugin()
    second = await node.run_pod(staged("second", 0, LATE))
    assert second.variables["first"]["GPUSHARE_CARD"] == CARDS[0]


async def the_kubelet_forgets(node: Node, name: str) -> None:
    """As after the loss of its checkpoint: the pod runs on and is listed without devices."""
    node.api.put(PODS, {**node.api.pod(name), "status": {"phase": "Running"}})
    node.kubelet.pods[name_of(name)].held.clear()
    node.kubelet.pods[name_of(name)].variables.clear()
    await node.restart_plugin()
    await node.until_registered()


async def test_a_running_pod_that_the_kubelet_forgot_is_not_the_one_that_is_admitted(node: Node) -> None:
    await node.run_pod(plain("a", 1, EARLY, units=8))
    await the_kubelet_forgets(node, "a")
    second = await node.run_pod(plain("b", 0, LATE, units=8))
    assert second.variables["main"]["GPUSHARE_CARD"] == CARDS[0]


async def test_what_a_forgotten_pod_has_stays_its_own(node: Node) -> None:
    await node.run_pod(plain("a", 1, EARLY, units=12))
    await the_kubelet_forgets(node, "a")
    await node.until("the status", lambda: node.on_cards() == {"a": {CARDS[1]: 12}})
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    assert "default/a" in node.message("LedgerInSync")
    after = await node.run_pod(plain("b", 1, LATE, units=8))
    assert after.variables["main"]["GPUSHARE_CARD"] == CARDS[0]
    node.end_pod("a")
    await node.until("the end of it", lambda: node.condition("LedgerInSync") == ("True", "InSync"))


async def test_units_that_the_kubelet_forgot_a_moment_ago_are_not_given_again(node: Node) -> None:
    """The plugin runs on, and the pod ran only after it was looked at."""
    without_checkpoint(node)
    await node.run_pod(plain("a", 0, EARLY, units=12))
    await node.run_pod(plain("full", 1, EARLY, units=12))
    await node.until("the status", lambda: node.share_node.status.summary == "12/16 12/16")
    node.api.put(PODS, {**node.api.pod("a"), "status": {"phase": "Running"}})
    node.kubelet.pods[name_of("a")].held.clear()
    node.kubelet.pods[name_of("a")].variables.clear()
    with pytest.raises(AdmissionError, match="asked 8, largest free 4"):
        await node.run_pod(pod_json("bare", container(units=8)))
