"""Use of cards that are simulated: in the status past a threshold, in metrics at once, Events once."""

import asyncio
import itertools
import logging

import pytest
from tests.component.plugin.test_health_server import call
from tests.component.plugin.test_metrics import READ
from tests.component.plugin.test_modes import DEVICES, slice_pod, slices
from tests.fakes.api_server import EVENTS, PODS, SHARE_NODES, status
from tests.fakes.patience import PATIENCE
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, pod_json

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_plugin.devices.simulated.source import card_uuid

FIRST, SECOND = (card_uuid(NODE, index) for index in range(2))
BY_CONTAINER = {"scope": "Containers"}
WITHIN = ("False", "WithinRequests")
EXCEEDED = ("True", "RequestExceeded")


@pytest.fixture
async def measured_node(node: Node) -> Node:
    node.share(measurement=BY_CONTAINER)
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == WITHIN)
    return node


def load(node: Node, pod: str, text: str) -> None:
    """As by ``kubectl annotate``."""
    body = node.api.pod(pod)
    body["metadata"].setdefault("annotations", {})[SIMULATED_LOAD_ANNOTATION] = text
    node.api.put(PODS, body)


def used(node: Node) -> dict[str, str]:
    """Of the node, its cards that are in use, and its containers that use something."""
    status = node.share_node.status
    cards = {str(card.index): card.used_memory for card in status.cards if card.used_memory != "0"}
    shares = [share for card in status.cards for share in card.pods]
    containers = {f"{share.name}/{share.container}": share.used_memory for share in shares}
    return {"node": status.memory.used, **cards, **containers}


async def run_pod(node: Node, name: str = "a", **units: int) -> None:
    asking = units or {"main": 4}
    text = annotation({container_name: {FIRST: amount} for container_name, amount in asking.items()})
    body = pod_json(name, *itertools.starmap(container, asking.items()), annotation=text)
    await node.run_pod(body)
    await node.until("the pod", lambda: name in node.on_cards())


async def figure(node: Node, line: str) -> float | None:
    """The value of the series that begins so."""
    _, _, text = (await call(node.health_port, READ)).partition("\r\n\r\n")
    return next((float(row.split()[-1]) for row in text.splitlines() if row.startswith(line)), None)


def events(node: Node) -> list[tuple[str, str, str]]:
    written = node.api.objects[EVENTS].values()
    return [(event["regarding"]["name"], event["type"], event["reason"]) for event in written]


async def test_a_load_is_shown_by_card_and_by_container(measured_node: Node) -> None:
    node = measured_node
    await run_pod(node, x=4, y=2)
    load(node, "a", "x=3Gi,y=1Gi")
    await node.until("the use", lambda: used(node) == {"node": "4Gi", "0": "4Gi", "a/x": "3Gi", "a/y": "1Gi"})
    load(node, "a", "")
    await node.until("nothing", lambda: used(node) == {"node": "0", "a/x": "0", "a/y": "0"})
    assert events(node) == []


async def test_what_moves_little_is_in_the_metrics_alone(node: Node, unused_tcp_port: int) -> None:
    node.health_port = unused_tcp_port
    node.share(measurement=BY_CONTAINER)
    await node.restart_plugin()
    await node.until_registered()
    await run_pod(node)
    load(node, "a", "2Gi")
    await node.until("the use", lambda: used(node)["node"] == "2Gi")
    written = node.api.patched.count(f"{SHARE_NODES}/{NODE}/status")
    series = f'gpushare_container_memory_used_bytes{{card="{FIRST}",container="main"'
    for size in (2100, 2300, 2700, 2500, 1500):
        load(node, "a", f"{size}Mi")
        await until_shown(node, series, size * 2**20)
    assert used(node)["node"] == "2Gi"
    assert node.api.patched.count(f"{SHARE_NODES}/{NODE}/status") == written


async def until_shown(node: Node, series: str, value: int) -> None:
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (shown := await figure(node, series)) != value:
        assert asyncio.get_running_loop().time() < deadline, f"{series} is {shown}, not {value}"


async def test_more_than_was_asked_for_is_told_once_and_so_is_its_end(measured_node: Node) -> None:
    node = measured_node
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    assert node.message("MemoryExceeded").startswith(
        f"container main of pod default/a uses 5Gi of card {FIRST} and asked for 4Gi"
    )
    await node.until("the Event", lambda: events(node) == [("a", "Warning", "MemoryExceeded")])
    load(node, "a", "7Gi")
    await node.until("the use", lambda: used(node)["a/main"] == "7Gi")
    await node.restart_plugin()
    load(node, "a", "9Gi")
    await node.until("the use after a restart", lambda: used(node)["a/main"] == "9Gi")
    assert len(events(node)) == 1
    load(node, "a", "4Gi")
    await node.until("its end", lambda: node.condition("MemoryExceeded") == WITHIN)
    await node.until("the other Event", lambda: events(node)[1:] == [("a", "Normal", "MemoryWithinRequest")])


def exceeded_since(node: Node) -> list[str]:
    return [share.exceeded_since for card in node.share_node.status.cards for share in card.pods]


async def test_since_when_it_is_too_much_is_kept_until_it_ends(measured_node: Node) -> None:
    node = measured_node
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    assert exceeded_since(node) == [""]  # the policy asks for no isolation
    node.share(measurement=BY_CONTAINER, isolation={"onExcess": "Evict"})
    await node.until("the beginning", lambda: exceeded_since(node) != [""])
    begun = exceeded_since(node)
    await node.restart_plugin()
    load(node, "a", "7Gi")
    await node.until("the use after a restart", lambda: used(node)["a/main"] == "7Gi")
    assert exceeded_since(node) == begun
    load(node, "a", "4Gi")
    await node.until("the end", lambda: exceeded_since(node) == [""])


async def test_a_pod_that_ends_takes_its_excess_along(measured_node: Node) -> None:
    node = measured_node
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    await node.until("the Event", lambda: len(events(node)) == 1)
    node.end_pod("a")
    await node.until("its end", lambda: node.condition("MemoryExceeded") == WITHIN)
    await node.until("nothing in use", lambda: used(node) == {"node": "0"})
    assert set(events(node)[1:]) <= {("a", "Normal", "MemoryWithinRequest")}  # it ended before its units went


async def test_a_load_that_makes_no_sense_is_ignored_and_said_once(
    measured_node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node = measured_node
    await run_pod(node)
    with caplog.at_level(logging.WARNING):
        load(node, "a", "lots")
        await run_pod(node, "b")
        load(node, "b", "2Gi")
        await node.until("the other load", lambda: used(node)["node"] == "2Gi")
    said = [record.getMessage() for record in caplog.records if "simulated load" in record.getMessage()]
    assert len(said) == 1
    assert "'lots': use a size such as 3Gi" in said[0]


async def test_by_default_only_cards_are_measured_and_off_is_off(node: Node) -> None:
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the use", lambda: used(node) == {"node": "5Gi", "0": "5Gi", "a/main": "0"})
    assert node.condition("MemoryExceeded") == ("", "")
    node.share(measurement={"scope": "Off"})
    await node.until("nothing", lambda: used(node) == {"node": "0", "a/main": "0"})
    assert events(node) == []


async def test_an_event_that_is_refused_stops_nothing(measured_node: Node) -> None:
    node = measured_node
    node.api.fail("POST", "/apis/events.k8s.io/v1/namespaces/default/events", status(403))
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    load(node, "a", "1Gi")
    await node.until("its end", lambda: node.condition("MemoryExceeded") == WITHIN)
    assert used(node)["a/main"] == "1Gi"


async def test_a_source_that_does_not_tell_is_no_proof_of_anything(measured_node: Node) -> None:
    node = measured_node
    await run_pod(node)
    load(node, "a", "5Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    node.open_use = lambda _: None
    node.share(measurement=BY_CONTAINER)
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == ("Unknown", "UseNotTold"))
    assert used(node)["a/main"] == "5Gi"
    await node.until("the Event", lambda: len(events(node)) == 1)


async def test_of_slices_each_card_counts_for_itself(node: Node) -> None:
    await slices(node)
    node.share(mode="Slices", slicesPerCard=2, devices=DEVICES, measurement=BY_CONTAINER)
    await node.run_pod(slice_pod("a", 2, 0, 1))
    await node.until("the pod", lambda: node.on_cards() == {"a": {FIRST: 1, SECOND: 1}})
    load(node, "a", "12Gi")
    await node.until("the use", lambda: used(node)["node"] == "12Gi")
    assert [card.used_memory for card in node.share_node.status.cards] == ["6Gi", "6Gi", "0"]
    assert node.condition("MemoryExceeded") == WITHIN
    load(node, "a", "18Gi")
    await node.until("the condition", lambda: node.condition("MemoryExceeded") == EXCEEDED)
    for card in (FIRST, SECOND):
        assert f"uses 9Gi of card {card} and asked for 8Gi" in node.message("MemoryExceeded")
