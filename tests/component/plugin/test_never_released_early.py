"""What the kubelet holds for a pod stays in the status, however little the API server tells of the pod."""

from collections.abc import Callable

import pytest
from tests.fakes.api_server import PODS, status
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json

MEMORY, SLICE, CARD = GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource
DEVICES = {"source": "Simulated", "simulated": [{"count": 4, "memory": "16Gi"}]}
SLICED = pod_json("web", container(units=2, resource=SLICE))

MODES = [
    pytest.param("Memory", {}, pod_json("web", container(units=12)), 12, id="Memory"),
    pytest.param("Slices", {"slicesPerCard": 2}, SLICED, 2, id="Slices"),
    pytest.param("Exclusive", {}, pod_json("web", container(units=2, resource=CARD)), 2, id="Exclusive"),
    pytest.param("Mixed", {"slicesPerCard": 2}, SLICED, 2, id="Mixed"),
    pytest.param(
        "Mixed",
        {"slicesPerCard": 2},
        pod_json("web", container("main", 12, MEMORY), container("side", 1, SLICE)),
        13,
        id="Mixed of two classes",
    ),
]


def held(written: NodeStatus | Json) -> dict[str, int]:
    """UID -> units."""
    found: dict[str, int] = {}
    status = written if isinstance(written, NodeStatus) else NodeStatus.from_json(written)
    for card in status.cards:
        for share in card.pods:
            found[share.uid] = found.get(share.uid, 0) + share.units
    return found


async def shared(node: Node, mode: str, spec: Json) -> None:
    node.share(mode=mode, devices=DEVICES, **spec)
    await node.until("the cards", lambda: len(node.share_node.status.cards) == 4)
    names = {"Memory": {MEMORY}, "Slices": {SLICE}, "Exclusive": {CARD}}.get(mode, {MEMORY, SLICE, CARD})
    await node.until("the lists", lambda: all(len(node.kubelet.offered.get(name, ())) > 3 for name in names))
    await node.until_registered()


def silence_specs(node: Node) -> None:
    """The pod is seen by the watch, and cannot be read."""
    node.api.fail("GET", pod_path("default", "web"), *[status(503)] * 1000)


def watched_writes(node: Node) -> list[dict[str, int]]:
    """Returns what is held by each status that is written from now on; the list grows."""
    seen: list[dict[str, int]] = []

    def look(written: Json) -> Json:
        seen.append(held(written))
        return written

    node.api.kept = look
    return seen


def in_state(node: Node) -> Callable[[], bool]:
    """Whether the plugin knows of the pod."""
    return lambda: bool(node.agent and any(name.name == "web" for name in node.agent.state.pods))


@pytest.mark.parametrize(("mode", "spec", "pod", "units"), MODES)
async def test_of_a_pod_that_the_kubelet_showed_first(
    node: Node, mode: str, spec: Json, pod: Json, units: int
) -> None:
    """The API server's watch was broken when the pod was admitted; then it cannot tell what it asks for."""
    await shared(node, mode, spec)
    await node.kubelet.admit(pod)
    await node.until("the orphan", lambda: held(node.share_node.status) == {"uid-web": units})
    written = watched_writes(node)
    silence_specs(node)
    node.api.put(PODS, pod)
    await node.until("the pod", in_state(node))
    await node.until("its status", lambda: not any(_orphans(node.share_node.status)))
    node.api.recover()
    await node.until("what it asks for", lambda: node.knows("web"))
    await node.until("the annotation", lambda: node.allocation("web") is not None)
    assert written
    assert [holders for holders in written if holders != {"uid-web": units}] == []


def _orphans(written: NodeStatus) -> list[bool]:
    return [share.orphaned for card in written.cards for share in card.pods]


@pytest.mark.parametrize(("mode", "spec", "pod", "units"), MODES)
async def test_of_a_plugin_that_starts_anew_and_cannot_read_what_pods_ask_for(
    node: Node, mode: str, spec: Json, pod: Json, units: int
) -> None:
    await shared(node, mode, spec)
    await node.run_pod(pod)
    await node.until("the annotation", lambda: node.allocation("web") is not None)
    await node.until("its status", lambda: held(node.share_node.status) == {"uid-web": units})
    written = watched_writes(node)
    silence_specs(node)
    await node.restart_plugin()
    await node.until("the pod", in_state(node))
    await node.until_registered()
    node.api.recover()
    await node.until("what it asks for", lambda: node.knows("web"))
    assert written
    assert [holders for holders in written if holders != {"uid-web": units}] == []
