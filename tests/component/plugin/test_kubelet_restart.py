"""A kubelet that was restarted lists nobody for a moment: what pods have stays in all that is told."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.component.plugin.test_never_released_early import MODES, held, shared, watched_writes
from tests.fakes.api_server import PODS
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held import kubelet_restart as shown_pods
from gpushare_plugin.devices.simulated.source import card_uuid

CARDS = [card_uuid(NODE, index) for index in range(2)]


@contextmanager
def unheard_pods(node: Node) -> Iterator[None]:
    """The API server does not answer the kubelet."""
    node.kubelet.hears = False
    yield
    node.kubelet.hears = True


async def restart(node: Node) -> None:
    await node.kubelet.stop()
    await node.kubelet.start()
    node.kubelet.listings = 0


async def two_answers(node: Node) -> None:
    """By PodResources that list nobody, and what the plugin makes of it."""
    await node.until("two answers", lambda: node.kubelet.listings >= 2)
    await node.kubelet.until(
        "the list", lambda it: it.plugin is not None and "Healthy" in it.devices.values()
    )
    await node.until_registered()


async def all_pods(node: Node) -> None:
    await node.until("all pods in the list", lambda: not node.kubelet.unheard)
    answers = node.kubelet.listings
    await node.until("one answer more", lambda: node.kubelet.listings > answers)


def running(name: str, units: int = 4, *, resource: str = GPUSHARE.memory_resource) -> Json:
    pod = pod_json(name, container(units=units, resource=resource))
    pod["status"] = {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}
    return pod


async def runs(node: Node, name: str, units: int = 4) -> None:
    await node.run_pod(running(name, units))
    await node.until("its status", lambda: held(node.share_node.status).get(f"uid-{name}") == units)


@pytest.mark.parametrize(("mode", "spec", "pod", "units"), MODES)
async def test_what_pods_have_is_in_use_before_the_kubelet_lists_them(
    node: Node, mode: str, spec: Json, pod: Json, units: int
) -> None:
    await shared(node, mode, spec)
    await node.run_pod(pod)
    await node.until("the annotation", lambda: node.allocation("web") is not None)
    await node.until("its status", lambda: held(node.share_node.status) == {"uid-web": units})
    annotated = node.allocation("web")
    offered = {name: ids for name, ids in node.kubelet.offered.items() if "Healthy" in ids.values()}
    written = watched_writes(node)
    with unheard_pods(node):
        await restart(node)
        await two_answers(node)
        await node.until("the same lists", lambda: node.kubelet.offered.items() >= offered.items())
    await all_pods(node)
    assert written
    assert [held for held in written if held != {"uid-web": units}] == []
    assert node.allocation("web") == annotated
    assert node.kubelet.offered.items() >= offered.items()


async def test_a_pod_that_ended_meanwhile_is_released_when_the_others_are_listed(node: Node) -> None:
    await runs(node, "gone", 4)
    await runs(node, "stays", 8)
    with unheard_pods(node):
        await restart(node)
        node.api.delete(PODS, "gone", "default")
        node.kubelet.pods.pop(name_of("gone"))
        written = watched_writes(node)
        await two_answers(node)
    await node.until("its end", lambda: held(node.share_node.status) == {"uid-stays": 8})
    assert {"uid-gone": 4, "uid-stays": 8} in written
    assert [held for held in written if held.get("uid-stays") != 8] == []


async def test_on_a_node_without_other_pods_it_is_released_after_a_while(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_pods, "SETTLED_AFTER", 2.0)
    await runs(node, "gone")
    await restart(node)
    node.api.delete(PODS, "gone", "default")
    node.kubelet.pods.pop(name_of("gone"))
    await node.until("its end", lambda: held(node.share_node.status) == {})
    await node.until_registered()
    await runs(node, "next")


@pytest.mark.usefixtures("no_period")
async def test_a_pod_that_was_shown_and_is_not_any_more_is_released_at_once(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_pods, "SETTLED_AFTER", 3600.0)
    await runs(node, "web")
    await restart(node)
    await all_pods(node)
    node.kubelet.pods.pop(name_of("web"))
    node.api.delete(PODS, "web", "default")
    await node.until("its end", lambda: held(node.share_node.status) == {})


async def test_a_static_pod_that_comes_first_gets_nothing_of_theirs(node: Node) -> None:
    """Also where the kubelet offers units again that are held."""
    await node.run_pod(pod_json("web", container(units=12), annotation=annotation({"main": {CARDS[0]: 12}})))
    await node.until("its status", lambda: held(node.share_node.status) == {"uid-web": 12})
    with unheard_pods(node):
        await restart(node)
        await two_answers(node)
        node.kubelet.forgetful = True
        text = annotation({"main": {CARDS[0]: 8}})
        static = await node.run_pod(pod_json("static", container(units=8), annotation=text))
        assert static.variables["main"]["GPUSHARE_CARD"] == CARDS[1]


@pytest.mark.parametrize("checkpoint", [True, False], ids=["with checkpoint", "without"])
async def test_a_plugin_that_starts_then_keeps_what_was_recorded(node: Node, checkpoint: bool) -> None:  # noqa: FBT001
    await runs(node, "web")
    await node.stop_plugin()
    if not checkpoint:
        node.kubelet.writes_checkpoint = False
        node.kubelet.checkpoint.unlink()
    written = watched_writes(node)
    with unheard_pods(node):
        await restart(node)
        await node.start_plugin()
        await two_answers(node) if checkpoint else await node.until(
            "two answers", lambda: node.kubelet.listings >= 2
        )
        node.share("512Mi")
        await node.until("that", lambda: node.agent is not None and node.agent.state.share_node is not None)
        answers = node.kubelet.listings
        await node.until("a round after it", lambda: node.kubelet.listings > answers)
    await all_pods(node)
    await node.until("the reason", lambda: node.condition("UnitChangeBlocked")[0] == "True")
    assert node.share_node.status.memory_unit == "1Gi"
    assert written
    assert [held for held in written if held != {"uid-web": 4}] == []


def watched_sync(node: Node) -> list[str]:
    """Returns what each status says of LedgerInSync that is written from now on; the list grows."""
    said: list[str] = []

    def look(written: Json) -> Json:
        said.extend(
            condition["status"] for condition in written["conditions"] if condition["type"] == "LedgerInSync"
        )
        return written

    node.api.kept = look
    return said


@pytest.mark.parametrize("checkpoint", [True, False], ids=["with checkpoint", "without"])
@pytest.mark.parametrize("kubelet", [True, False], ids=["kubelet too", "plugin alone"])
async def test_a_restart_of_healthy_parts_is_no_difference_between_books(
    node: Node,
    kubelet: bool,  # noqa: FBT001
    checkpoint: bool,  # noqa: FBT001
) -> None:
    """The operator would tell people, at every upgrade of every node."""
    await runs(node, "web")
    await node.stop_plugin()
    if not checkpoint:
        node.kubelet.writes_checkpoint = False
        node.kubelet.checkpoint.unlink()
    said = watched_sync(node)
    if kubelet:
        await restart(node)
    await node.start_plugin()
    await node.until_registered()
    await node.until("all pods", lambda: is_settled(node) and node.condition("LedgerInSync")[0] == "True")
    assert said
    assert "False" not in said


async def test_a_socket_that_is_taken_away_and_put_back_is_no_restart(node: Node) -> None:
    await runs(node, "web")
    await node.until("all pods were shown", lambda: is_settled(node))
    socket, hidden = node.kubelet.pod_resources, node.kubelet.pod_resources.with_suffix(".hidden")
    socket.rename(hidden)
    await next_answer(node)
    assert is_settled(node)
    hidden.rename(socket)
    await next_answer(node)
    assert is_settled(node)


def is_settled(node: Node) -> bool:
    return node.agent is not None and node.agent.state.listed_since_restart.complete


async def next_answer(node: Node) -> None:
    """The end of a pod is a reason to ask."""
    node.api.put(PODS, pod_json("other", container()))
    await node.until("the other pod", lambda: node.knows("other"))
    node.api.delete(PODS, "other", "default")
    answers = node.kubelet.listings
    await node.until("an answer", lambda: node.kubelet.listings > answers)
