"""Allocate of units that others have: a kubelet does not ask which where it needs all that it calls free."""

import asyncio

import pytest
from tests.component.plugin.test_kubelet_restart import all_pods
from tests.component.plugin.test_lost_assignments import (
    CARD,
    FIRST,
    MEMORY,
    RUNNING,
    SLICE,
    allocated,
    forgetful_restart,
    lists,
    mirror,
    one_card,
)
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, name_of, pod_json

from gpushare_plugin.kubelet import allocator

NOT_LISTED = "has not listed all of their pods"


async def shared_card(node: Node, mode: str) -> None:
    if mode != "Exclusive":
        await one_card(node, mode)
        return
    node.share(mode=mode, devices={"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]})
    await node.kubelet.until("the card in the list", lambda it: len(it.devices_of(CARD)) == 1)
    await node.until_registered()


async def runs(node: Node, units: int, resource: str = MEMORY) -> None:
    await node.run_pod(pod_json("first", container(units=units, resource=resource)) | {"status": RUNNING})
    await node.until("its status", lambda: "first" in node.on_cards())


async def is_not_heard_of(node: Node) -> None:
    """The kubelet has lost its checkpoint, and the API server does not answer it."""
    served = 3 if SLICE in node.kubelet.plugins else 1
    await node.kubelet.stop()
    node.kubelet.forget_units(name_of("first"))
    node.kubelet.hears = False
    node.kubelet.aligns = True
    await node.kubelet.start()
    await lists(node, served)
    await node.until("a list without it", lambda: is_unshown(node))


def is_unshown(node: Node) -> bool:
    return node.agent is not None and name_of("first") in node.agent.state.assigned.unshown


def hears_of_all(node: Node) -> None:
    node.kubelet.hears = True
    node.kubelet.unheard.clear()


@pytest.mark.parametrize(
    ("mode", "resource", "units", "every"),
    [
        pytest.param("Memory", MEMORY, 12, 16, id="memory"),
        pytest.param("Memory", MEMORY, 16, 16, id="as much memory"),
        pytest.param("Mixed", MEMORY, 12, 16, id="memory of a mixed node"),
        pytest.param("Mixed", SLICE, 1, 2, id="a slice of a mixed node"),
        pytest.param("Exclusive", CARD, 1, 1, id="a card"),
    ],
)
async def test_what_a_pod_has_that_a_kubelet_has_not_heard_of_yet_is_nobody_elses(
    node: Node, mode: str, resource: str, units: int, every: int
) -> None:
    await shared_card(node, mode)
    await runs(node, units, resource)
    before = node.on_cards()
    await is_not_heard_of(node)
    other = mirror("other", 0)
    other["spec"]["containers"] = [container(units=every, resource=resource)]
    with pytest.raises(AdmissionError, match=NOT_LISTED):
        await node.kubelet.admit(other)
    assert node.on_cards() == before


async def test_what_is_left_beside_it_is_given(node: Node) -> None:
    await one_card(node, "Memory")
    await runs(node, 12)
    await is_not_heard_of(node)
    await node.kubelet.allocate(MEMORY, [*node.kubelet.devices_of(MEMORY)][:4])


async def test_a_pod_that_it_has_just_heard_of_gets_its_own_units_again(node: Node) -> None:
    """Its machine was started anew, and it is admitted once more before its name was listed."""
    await one_card(node, "Memory")
    await runs(node, 16)
    await is_not_heard_of(node)
    hears_of_all(node)
    assert is_unshown(node)
    await node.kubelet.restart_container(name_of("first"), "main", 16)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("True", "InSync"))


async def test_it_is_nobody_elses_either_while_pod_resources_are_silent(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(allocator, "POD_RESOURCES_TIMEOUT", 0.1)
    await one_card(node, "Memory")
    await runs(node, 12)
    await is_not_heard_of(node)
    node.kubelet.deaf = True
    with pytest.raises(AdmissionError, match=NOT_LISTED):
        await node.kubelet.admit(mirror("other", 16))


async def test_what_a_kubelet_has_lost_for_a_moment_is_not_given_twice(node: Node) -> None:
    await one_card(node, "Memory")
    await runs(node, 12)
    node.kubelet.forgetful = True
    node.kubelet.aligns = True
    with pytest.raises(AdmissionError, match="12 units that a container of default/first has"):
        await node.kubelet.admit(pod_json("other", container(units=16)))
    assert node.on_cards() == {"first": {FIRST: 12}}


async def test_nor_what_it_has_given_away_a_moment_ago_and_forgets_at_once(node: Node) -> None:
    """No list has it yet: whoever asks for one at a bad moment makes the kubelet forget it."""
    await one_card(node, "Memory")
    node.kubelet.forgetful = True
    node.api.put(PODS, pod_json("other", container(units=16)))
    await node.run_pod(pod_json("first", container(units=12)) | {"status": RUNNING})
    node.kubelet.aligns = True
    with pytest.raises(AdmissionError, match="12 units that a container of default/first has"):
        await node.kubelet.admit(pod_json("other", container(units=16)))
    await node.until("its status", lambda: node.on_cards() == {"first": {FIRST: 12}})


@pytest.mark.parametrize("deaf", [False, True], ids=["listed", "in silence"])
async def test_nor_what_it_gives_away_at_this_moment(
    node: Node, monkeypatch: pytest.MonkeyPatch, *, deaf: bool
) -> None:
    """Two containers restart, and it has lost what it had set aside for the first one."""
    monkeypatch.setattr(allocator, "POD_RESOURCES_TIMEOUT", 0.05)
    await one_card(node, "Memory")
    node.kubelet.deaf = deaf
    units = [*node.kubelet.devices_of(MEMORY)][:4]
    await node.kubelet.allocate(MEMORY, units)
    with pytest.raises(AdmissionError, match="to another container at this moment"):
        await node.kubelet.allocate(MEMORY, units)


async def test_of_two_that_ask_for_the_same_units_at_once_one_gets_them(node: Node) -> None:
    """Both wait for what the kubelet lists: who was listed with them has just ended."""
    await one_card(node, "Memory")
    await runs(node, 12)
    units = node.kubelet.pods.pop(name_of("first")).held["main"]
    both = (node.kubelet.allocate(MEMORY, units) for _ in range(2))
    answers = await asyncio.gather(*both, return_exceptions=True)
    (refused,) = (answer for answer in answers if answer)
    assert "to another container at this moment" in str(refused)


async def test_what_a_pod_had_that_ended_a_moment_ago_is_given(node: Node) -> None:
    """What was listed last is older."""
    await one_card(node, "Memory")
    await runs(node, 12)
    node.kubelet.aligns = True
    node.kubelet.pods.pop(name_of("first"))
    await node.kubelet.admit(pod_json("other", container(units=16)))


async def test_so_it_is_while_pod_resources_are_silent(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "POD_RESOURCES_TIMEOUT", 0.1)
    await one_card(node, "Memory")
    await runs(node, 12)
    node.kubelet.aligns = node.kubelet.deaf = True
    node.kubelet.pods.pop(name_of("first"))
    await node.kubelet.admit(pod_json("other", container(units=16)))


@pytest.mark.parametrize("mode", ["Memory", "Exclusive"])
async def test_an_init_container_lends_its_units_within_its_pod(node: Node, mode: str) -> None:
    await shared_card(node, mode)
    node.kubelet.aligns = True
    resource, units = (MEMORY, 16) if mode == "Memory" else (CARD, 1)
    inits = (container("init", units, resource), container("second", units, resource))
    await node.run_pod(pod_json("staged", container(units=units, resource=resource), inits=inits))
    await node.until("its status", lambda: allocated(node) == units)


async def test_what_a_container_runs_with_is_not_given_to_a_pod_that_asks_for_as_much(node: Node) -> None:
    """The kubelet has lost it; all that it calls free is just as much."""
    await one_card(node, "Memory")
    await runs(node, 12)
    await forgetful_restart(node, "first")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    await node.run_pod(pod_json("small", container(units=4)) | {"status": RUNNING})
    node.kubelet.aligns = True
    with pytest.raises(AdmissionError, match="containers run with 12 of them"):
        await node.run_pod(pod_json("other", container(units=12)))


async def test_an_ended_init_container_may_take_what_the_others_of_its_pod_run_with(node: Node) -> None:
    """A kubelet without its checkpoint admits pods that run once more: a refusal would end them."""
    await one_card(node, "Memory")
    staged = pod_json("first", container(units=12), container("side", 3), inits=(container("init", 15),))
    await node.run_pod(staged | {"status": RUNNING})
    await node.until("its status", lambda: allocated(node) == 15)
    await forgetful_restart(node, "first")
    await all_pods(node)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    await node.run_pod(pod_json("other", container(units=1)) | {"status": RUNNING})
    node.kubelet.aligns = True
    await node.kubelet.restart_container(name_of("first"), "init", 15)
    await node.until("a full card", lambda: allocated(node) == 16)
