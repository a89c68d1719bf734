"""Cards that must not serve a second class although the kubelet, or its list, would let them."""

import asyncio

import pytest
from tests.component.plugin.test_mixed import CARD, MEMORY, SLICE, asking, mixed, offered, until_offered
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, name_of, pod_json

from gpushare_plugin.kubelet.reservations import ALLOCATE_DEBOUNCE

RESERVED_FOR = ALLOCATE_DEBOUNCE + 0.1
"""Seconds after an Allocate after which only what is known of the pod locks its cards."""


async def until_reserved_no_more(node: Node) -> None:
    clock = asyncio.get_running_loop().time
    end = clock() + RESERVED_FOR
    await node.until("the end of the reservation", lambda: clock() > end)


async def test_locks_go_also_while_the_spec_cannot_be_read(node: Node) -> None:
    """What is offered stays; which cards serve which class follows the pods all the same."""
    await mixed(node, cards=2)
    await node.run_pod(asking("s", 1, SLICE))
    await until_offered(node, 1, 4, 86)
    node.share(mode="Turbo")
    await node.until("the problem", lambda: bool(node.agent and node.agent.state.share_node_problem))
    node.end_pod("s")
    await until_offered(node, 2, 4, 172)
    await node.run_pod(asking("m", 1, MEMORY))
    await until_offered(node, 1, 2, 172)


async def test_forgotten_units_of_another_class_are_not_taken_unasked(node: Node) -> None:
    """A kubelet with a topology manager takes all units of a NUMA node without asking which."""
    await mixed(node, cards=1)
    slices = [*node.kubelet.offered[SLICE]]
    await node.run_pod(asking("m", 10, MEMORY))
    await node.until("the annotation", lambda: node.allocation("m") is not None)
    node.api.put(PODS, {**node.api.pod("m"), "status": {"phase": "Running"}})
    node.kubelet.forget_units(name_of("m"))
    forgot = ("False", "KubeletForgot")
    await node.until("the word", lambda: node.condition("LedgerInSync") == forgot)
    with pytest.raises(AdmissionError, match="serves memory now"):
        await node.kubelet.allocate(SLICE, slices[:1])


async def test_units_of_another_resource_are_refused(node: Node) -> None:
    """As from a list that was sent before the mode was changed."""
    await mixed(node, cards=1)
    with pytest.raises(AdmissionError):
        await node.kubelet.allocate(MEMORY, [*node.kubelet.offered[SLICE]][:1])


async def test_what_only_an_init_container_has_is_nobody_elses(node: Node) -> None:
    """PodResources do not show it, and the checkpoint cannot be read."""
    node.kubelet.writes_checkpoint = False
    await mixed(node, cards=1)
    slices = [*node.kubelet.offered[SLICE]]
    pod = pod_json("a", container("main"), inits=(container("init", 10, MEMORY),))
    await node.run_pod(pod)
    await until_reserved_no_more(node)
    with pytest.raises(AdmissionError):
        await node.kubelet.allocate(SLICE, slices[:1])
    with pytest.raises(AdmissionError):
        await node.run_pod(asking("s", 1, SLICE))
    await until_offered(node, 0, 0, 86)


def is_unshown(node: Node, name: str) -> bool:
    """Whether the plugin knows that the kubelet has not listed the pod since its start."""
    return node.agent is not None and name_of(name) in node.agent.state.assigned.unshown


async def test_a_pod_that_a_restarted_kubelet_has_not_admitted_again_keeps_its_class(node: Node) -> None:
    """Pods are listed one after the other, the oldest first: one bound meanwhile can be before it."""
    await mixed(node, cards=1)
    memory = [*node.kubelet.offered[MEMORY]]
    await node.run_pod(asking("s", 1, SLICE))
    await node.until("the annotation", lambda: node.allocation("s") is not None)
    node.api.put(PODS, {**node.api.pod("s"), "status": {"phase": "Running"}})
    held = node.kubelet.pods.pop(name_of("s"))
    await node.kubelet.stop()
    await node.kubelet.start()
    await node.until("the reading", lambda: is_unshown(node, "s"))
    await node.kubelet.until("the lists", lambda it: {MEMORY, SLICE, CARD} <= it.offered.keys())
    await until_offered(node, 0, 2, 0)
    with pytest.raises(AdmissionError, match="serves slice now"):
        await node.kubelet.allocate(MEMORY, memory[:1])
    node.kubelet.pods[name_of("s")] = held
    await node.until("the pod in the list", lambda: not is_unshown(node, "s"))
    node.end_pod("s")
    await until_offered(node, 1, 2, 86)


@pytest.mark.parametrize("checkpoint", [True, False], ids=["with checkpoint", "without"])
async def test_a_pod_deleted_by_force_keeps_its_card_while_plugin_and_kubelet_are_restarted(
    node: Node,
    checkpoint: bool,  # noqa: FBT001
) -> None:
    """It runs until the kubelet has heard of that, and nobody but the record knows what it has."""
    node.kubelet.writes_checkpoint = checkpoint
    await mixed(node, cards=1)
    memory = [*node.kubelet.offered[MEMORY]]
    other = pod_json("other", container())
    await node.run_pod({**other, "status": {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}})
    await node.run_pod(asking("whole", 1, CARD))
    await node.until("the lock", lambda: node.share_node.status.cards[0].lock == "Exclusive")
    await node.stop_plugin()
    node.api.delete(PODS, "whole", "default")
    node.kubelet.hears = False
    await node.kubelet.stop()
    await node.kubelet.start()
    await node.start_plugin()
    await node.kubelet.until(
        "the list of each class",
        lambda it: len(it.plugins) == 3 and not it.awaits_devices and 1 in map(len, it.offered.values()),
    )
    with pytest.raises(AdmissionError, match="serves card now"):
        await node.kubelet.allocate(MEMORY, memory[:1])
    assert offered(node) == (1, 0, 0)
    node.kubelet.pods.pop(name_of("whole"))
    node.kubelet.hears = True
    await until_offered(node, 1, 2, 86)
    await node.until("its end", lambda: node.share_node.status.cards[0].pods == [])


async def test_what_was_answered_locks_a_card_while_pod_resources_are_silent(node: Node) -> None:
    await mixed(node, cards=1)
    memory = [*node.kubelet.offered[MEMORY]]
    node.kubelet.deaf = True
    await node.run_pod(asking("s", 1, SLICE))
    await until_reserved_no_more(node)
    with pytest.raises(AdmissionError, match="serves slice now"):
        await node.kubelet.allocate(MEMORY, memory[:1])
    with pytest.raises(AdmissionError):
        await node.run_pod(asking("m", 1, MEMORY))
