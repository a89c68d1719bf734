"""Every container gets units of the card that its pod was promised, and annotations say what is true."""

import asyncio
from typing import Any

import grpc
import pytest
from tests.fakes.api_server import EVENTS, LEASES, PODS, SHARE_NODES, cut, status
from tests.fakes.kubelet import AdmissionError, Admitted, FakeKubelet
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json, sidecar

from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.simulated.source import card_uuid
from gpushare_plugin.kubelet import allocator
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as device_api

CARDS = [card_uuid(NODE, index) for index in range(2)]


def promised(name: str, card: int, units: int = 4, at: str = "2026-11-21T10:00:00Z") -> Json:
    text = annotation({"main": {CARDS[card]: units}}, at=at)
    return pod_json(name, container(units=units), annotation=text)


async def test_a_pod_gets_the_card_that_it_was_promised(node: Node) -> None:
    admitted = await node.run_pod(promised("a", 1))
    assert admitted.variables["main"] == {
        "NVIDIA_VISIBLE_DEVICES": CARDS[1],
        "GPUSHARE_CARD": CARDS[1],
        "GPUSHARE_CARD_INDEX": "1",
        "GPUSHARE_UNIT": "1Gi",
        "GPUSHARE_UNITS": "4",
        "GPUSHARE_MEMORY_MIB": "4096",
        "GPUSHARE_CARD_MEMORY_MIB": "16384",
    }
    await node.until("the status", lambda: node.share_node.status.summary == "0/16 4/16")
    assert node.on_cards() == {"a": {CARDS[1]: 4}}
    assert node.condition("LedgerInSync") == ("True", "InSync")


async def test_of_many_equal_pods_each_gets_its_own_card_in_whichever_order_they_are_admitted(
    node: Node,
) -> None:
    expected = {f"p{index}": index % 2 for index in range(16)}
    pods = [promised(name, card, units=2) for name, card in expected.items()]
    for pod in pods:
        node.api.put(PODS, pod)
    for pod in reversed(pods):
        await node.kubelet.admit(pod)
    await node.until("all in the status", lambda: node.share_node.status.summary == "16/16 16/16")
    assert node.on_cards() == {name: {CARDS[card]: 2} for name, card in expected.items()}
    assert not [path for path in node.api.patched if "/pods/" in path]


async def test_a_pod_that_somebody_else_bound_gets_one_card_and_its_annotation_afterwards(node: Node) -> None:
    await node.run_pod(pod_json("bare", container("x", 4), container("y", 2)))
    await node.until("the annotation", lambda: node.allocation("bare") is not None)
    written = node.allocation("bare")
    assert written
    assert written.containers == {"x": {CARDS[0]: 4}, "y": {CARDS[0]: 2}}
    assert (written.node, written.unit, written.cards) == (NODE, "1Gi", {CARDS[0]: 6})


async def test_a_pod_that_somebody_else_bound_does_not_take_what_others_were_promised(node: Node) -> None:
    node.api.put(PODS, promised("late", 0, units=14))
    await node.until("the promise", lambda: node.knows("late"))
    bare = await node.run_pod(pod_json("bare", container(units=4)))
    assert bare.variables["main"]["GPUSHARE_CARD"] == CARDS[1]


async def test_all_containers_of_a_pod_share_one_card(node: Node) -> None:
    filler = await node.run_pod(pod_json("filler", container(units=10)))
    assert filler.variables["main"]["GPUSHARE_CARD"] == CARDS[0]
    pod = pod_json(
        "many", container("x", 4), container("y", 2), inits=(container("first", 3), sidecar("proxy", 2))
    )
    admitted = await node.run_pod(pod)
    assert {variable["GPUSHARE_CARD"] for variable in admitted.variables.values()} == {CARDS[1]}
    await node.until("the annotation", lambda: node.allocation("many") is not None)
    written = node.allocation("many")
    assert written
    assert written.cards == {CARDS[1]: 8}
    assert set(written.containers) == {"first", "proxy", "x", "y"}


async def test_units_that_an_init_container_keeps_are_in_the_status(node: Node) -> None:
    await node.run_pod(pod_json("a", container(units=2), inits=(container("first", 6),)))
    await node.until("the status", lambda: node.share_node.status.summary == "6/16 0/16")


async def test_a_full_card_gives_way_to_another_and_the_annotation_says_so(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    await node.run_pod(promised("first", 0, units=14))
    moved = await node.run_pod(promised("moved", 0, units=4))
    assert moved.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    await node.until("the repair", lambda: _cards(node, "moved") == {CARDS[1]: 4})
    await node.until("the annotations in sync", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    await node.until("the Event", lambda: len(node.api.objects[EVENTS]) == 1)
    (event,) = node.api.objects[EVENTS].values()
    assert (event["regarding"]["name"], event["reason"]) == ("moved", "OtherCardThanAnnotated")
    assert event["note"] == f"card {CARDS[1]} in place of {CARDS[0]}: annotated card has no room"
    (line,) = (record for record in caplog.records if "another card than annotated" in record.message)
    assert line.levelname == "WARNING"


async def test_no_status_waits_for_an_event(node: Node) -> None:
    await node.run_pod(promised("first", 0, units=14))
    await node.until("the status", lambda: node.share_node.status.summary == "14/16 0/16")
    before = len(node.api.seen)
    await node.run_pod(promised("moved", 0, units=4))
    await node.until("the Event", lambda: len(node.api.objects[EVENTS]) == 1)
    seen = [request.path for request in node.api.seen[before:] if request.method in ("PATCH", "POST")]
    writes = [path for path in seen if not path.startswith(LEASES)]
    assert writes[:2] == [pod_path("default", "moved"), f"{SHARE_NODES}/{NODE}/status"]
    assert writes[2].endswith("/events")


async def test_a_pod_that_fits_no_card_is_refused_with_the_reason(node: Node) -> None:
    await node.run_pod(promised("a", 0, units=12))
    await node.run_pod(promised("b", 1, units=6))
    with pytest.raises(
        AdmissionError, match="insufficient GPU memory in one card: asked 12, largest free 10"
    ):
        await node.run_pod(pod_json("c", container(units=12)))
    await node.run_pod(pod_json("d", container(units=10)))


async def test_units_of_two_cards_are_refused(node: Node) -> None:
    call = node.kubelet.plugin.call("Allocate", device_api.AllocateRequest, device_api.AllocateResponse)  # type: ignore[union-attr]
    both = device_api.ContainerAllocateRequest(devices_ids=["AAA", "AAQ"])
    with pytest.raises(Exception, match=r"asked 2 units of one card, the kubelet chose 1 of .*, 1 of "):
        await call(device_api.AllocateRequest(container_requests=[both]))


async def test_units_that_podresources_show_as_assigned_are_never_given_again(node: Node) -> None:
    """The kubelet may forget for a moment what it has just given away."""
    first = await node.run_pod(promised("a", 0, units=8))
    node.kubelet.forgetful = True
    second = await node.run_pod(promised("b", 0, units=8))
    assert not set(first.held["main"]) & set(second.held["main"])
    assert second.variables["main"]["GPUSHARE_CARD"] == CARDS[0]


async def test_a_kubelet_that_is_asked_too_often_is_asked_again(node: Node) -> None:
    node.kubelet.busy = 3
    admitted = await node.run_pod(promised("a", 1))
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]
    assert node.kubelet.busy == 0


async def test_pods_that_were_swapped_while_podresources_were_silent_are_repaired(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "POD_RESOURCES_TIMEOUT", 0.1)
    first, second = (
        promised(name, card, at=f"2026-11-21T10:00:0{card}Z") for card, name in enumerate(("first", "second"))
    )
    for pod in (first, second):
        node.api.put(PODS, pod)
    await node.until("both promises", lambda: node.knows("first") and node.knows("second"))
    node.kubelet.deaf = True
    swapped = [await node.kubelet.admit(pod) for pod in (second, first)]
    node.kubelet.deaf = False
    assert [pod.variables["main"]["GPUSHARE_CARD"] for pod in swapped] == CARDS
    await node.until("the first repair", lambda: _cards(node, "first") == {CARDS[1]: 4})
    await node.until("the second repair", lambda: _cards(node, "second") == {CARDS[0]: 4})


async def test_podresources_that_are_known_to_be_silent_hold_up_no_pod(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.kubelet.assignment_reader.TIMEOUT", 0.2)
    node.kubelet.deaf = True
    node.api.put(PODS, promised("a", 1))
    await node.kubelet.admit(promised("a", 1))
    await node.until("the silence", lambda: node.condition("LedgerInSync")[0] == "Unknown")
    node.api.put(PODS, promised("b", 1))
    await node.until("the pod", lambda: node.knows("b"))
    begun = asyncio.get_running_loop().time()
    admitted = await node.kubelet.admit(promised("b", 1))
    assert asyncio.get_running_loop().time() - begun < 2
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]


async def test_a_repair_that_is_refused_is_said_and_tried_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_plugin.agent.PERIOD", 0.2)
    path = "/api/v1/namespaces/default/pods/bare"
    node.api.fail("PATCH", path, *[status(403, "not allowed")] * 3)
    await node.run_pod(pod_json("bare", container(units=4)))
    await node.until("the condition", lambda: node.condition("LedgerInSync") == ("False", "RepairPending"))
    assert "default/bare (403 Test: not allowed)" in node.message("LedgerInSync")
    await node.until("the annotation", lambda: node.allocation("bare") is not None)
    await node.until("the end of it", lambda: node.condition("LedgerInSync") == ("True", "InSync"))


async def test_repairs_end_with_the_first_that_the_api_server_does_not_answer(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of them would wait for its own timeout, and no status be written for minutes."""
    monkeypatch.setattr("gpushare_plugin.agent.PERIOD", 0.5)
    pods = [pod_json(name, container(units=2)) for name in ("x", "y", "z")]
    paths = [f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}" for pod in pods]
    for path in paths:
        node.api.fail("PATCH", path, *[cut] * 100)
    for pod in pods:
        await node.run_pod(pod)
    await node.until("the pods", lambda: len(node.on_cards()) == 3)
    node.api.seen.clear()
    status_path = f"{SHARE_NODES}/{NODE}/status"
    node.share(reservedMemory="1Gi")
    await node.api.wait_for("the status", lambda: bool(node.api.requests("PATCH", status_path)))
    assert (
        len([request for request in node.api.seen if request.method == "PATCH" and request.path in paths])
        <= 2
    )
    node.api.recover()
    await node.until("z's annotation", lambda: node.allocation("z") is not None)


async def preferred(node: Node, amount: int, available: list[str]) -> list[str]:
    """What the plugin names when the kubelet asks."""
    assert node.kubelet.plugin
    call = node.kubelet.plugin.call(
        "GetPreferredAllocation",
        device_api.PreferredAllocationRequest,
        device_api.PreferredAllocationResponse,
    )
    request = device_api.ContainerPreferredAllocationRequest(
        available_deviceIDs=available, allocation_size=amount
    )
    answer = await call(device_api.PreferredAllocationRequest(container_requests=[request]))
    return list(answer.container_responses[0].deviceIDs)


async def test_two_containers_that_are_asked_for_at_once_get_different_units(node: Node) -> None:
    """As when containers restart after the kubelet lost its checkpoint: it offers the same units for both."""
    everything = [*node.kubelet.devices]
    both = await asyncio.gather(preferred(node, 12, everything), preferred(node, 12, everything))
    assert not set(both[0]) & set(both[1])


async def test_no_unit_changes_while_the_kubelet_writes_down_what_it_took(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its PodResources do not show a container yet that was told already how much a unit is."""
    monkeypatch.setattr("gpushare_plugin.agent.DEBOUNCE", 0.0)
    call = node.kubelet._call

    async def slow(resource: str, method: str, request: Any, response: Any) -> Any:
        answer = await call(resource, method, request, response)
        if method == "Allocate":
            node.share("512Mi")
            await asyncio.sleep(0.15)
        return answer

    monkeypatch.setattr(FakeKubelet, "_call", lambda _, *arguments: slow(*arguments))
    admitted = await node.run_pod(pod_json("a", container(units=4)))
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "4096"
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == ("True", "PodsHoldUnits"))
    assert node.share_node.status.memory_unit == "1Gi"
    assert len(node.kubelet.lists) == 1


async def test_units_are_named_by_the_layout_that_is_in_force_when_they_are_named(node: Node) -> None:
    """It changes while the API server is asked about the pod: which card has room is then another matter."""
    unknown = promised("unknown", 1, units=12)
    changed = asyncio.Event()
    read_once(node, "unknown", after=changed)
    node.kubelet.pods[name_of("unknown")] = Admitted(unknown["spec"], "uid-unknown")
    asked = asyncio.create_task(preferred(node, 12, [*node.kubelet.devices]))
    path = "/api/v1/namespaces/default/pods/unknown"
    await node.api.wait_for("the question", lambda: bool(node.api.requests("GET", path)))
    node.share(reservedMemory="8Gi")
    await node.kubelet.until("the shorter list", lambda it: len(it.devices) == 16)
    changed.set()
    with pytest.raises(grpc.aio.AioRpcError, match="asked 12, largest free 8"):
        await asked


def read_once(node: Node, name: str, *, after: asyncio.Event) -> None:
    async def answer(_: object) -> None:
        await after.wait()

    node.api.fail("GET", f"/api/v1/namespaces/default/pods/{name}", answer)


async def test_a_pod_that_the_kubelet_knew_first_is_looked_up(node: Node) -> None:
    """The kubelet's own watch may be faster than ours."""
    pod = promised("fast", 1)
    node.api.put(PODS, pod)
    node.api.forget_history()
    admitted = await node.kubelet.admit(pod)
    assert admitted.variables["main"]["GPUSHARE_CARD"] == CARDS[1]


def _cards(node: Node, name: str) -> dict[str, int]:
    written = node.allocation(name)
    return written.cards if written else {}
