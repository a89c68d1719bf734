"""A node that moves from one policy to another has two plugins for a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_plugin.kubelet import registration
from gpushare_plugin.kubelet.plugin_server import PluginServer


@pytest.fixture
async def successor(node: Node) -> AsyncIterator[Node]:
    """The plugin of the other policy, at the same kubelet, registered after ``node``'s."""
    other = Node(node.kubelet, node.api)
    await other.start_plugin()
    await other.until("its registration", lambda: other.agent is not None and other.agent.is_registered)
    yield other
    await other.stop_plugin()


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin looks at its socket again during the test: what comes about does not wait for that."""
    monkeypatch.setattr(registration, "WATCHDOG_PERIOD", 600.0)


@pytest.mark.usefixtures("unwatched")
async def test_an_old_plugin_that_leaves_takes_nothing_from_the_new_one(node: Node, successor: Node) -> None:
    socket = node.kubelet.device_plugins / "gpushare-gpushare.io-memory.sock"
    inode = socket.stat().st_ino
    await node.stop_plugin()
    assert socket.stat().st_ino == inode
    await node.kubelet.until("the devices", lambda it: "Healthy" in it.devices.values())
    assert node.kubelet.plugin is not None
    assert successor.agent is not None


async def test_the_older_one_stands_by_and_comes_back(
    node: Node, successor: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "WATCHDOG_PERIOD", 0.05)
    await node.until("the older one stands by", lambda: _is_displaced(node))
    await asyncio.sleep(0.5)
    node.api.patched.clear()
    await asyncio.sleep(1)
    assert node.api.patched == []
    assert list(node.kubelet.devices.values()) == ["Healthy"] * 32
    assert node.kubelet.registrations == 2
    await successor.stop_plugin()
    await node.until("its return", lambda: node.agent is not None and node.agent.is_registered)
    await node.until_registered()
    await node.kubelet.until("its devices", lambda it: [*it.devices.values()] == ["Healthy"] * 32)


async def test_what_the_older_one_knew_is_forgotten_when_it_comes_back(
    node: Node, successor: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode has changed since, and there is no checkpoint to tell."""
    monkeypatch.setattr(registration, "WATCHDOG_PERIOD", 0.05)
    node.kubelet.writes_checkpoint = False
    node.kubelet.checkpoint.unlink(missing_ok=True)
    await node.until("the older one stands by", lambda: _is_displaced(node))
    node.share(mode="Slices", slicesPerCard=4)
    await node.kubelet.until("eight slices", lambda it: [*it.devices.values()] == ["Healthy"] * 8)
    await node.run_pod(pod_json("a", container(units=1, resource=GPUSHARE.slice_resource)))
    held = {"a": {node.share_node.status.cards[0].uuid: 1}}
    await node.until("its slice", lambda: node.on_cards() == held)
    annotation = node.allocation("a")
    registrations = node.kubelet.registrations
    await successor.stop_plugin()
    await node.kubelet.until("its return", lambda it: it.registrations > registrations)
    await node.until_registered()
    await node.kubelet.until("the slices again", lambda it: [*it.devices.values()] == ["Healthy"] * 8)
    assert node.share_node.status.memory_unit == "1/4 card"
    assert (node.on_cards(), node.allocation("a")) == (held, annotation)


def _is_displaced(node: Node) -> bool:
    return node.agent is not None and "standing by" in node.agent.readiness_problem()


async def test_a_socket_that_a_killed_plugin_left_is_replaced(node: Node) -> None:
    path = node.kubelet.device_plugins / "x.sock"
    first, second = PluginServer(path, _Nothing()), PluginServer(path, _Nothing())
    await first.ensure_reachable()
    await second.ensure_reachable()
    assert await first.is_displaced()
    path.rename(path.with_name("y.sock"))
    await second.stop()
    assert not await first.is_displaced()
    path.with_name("y.sock").rename(path)
    assert not await first.is_displaced()
    await first.ensure_reachable()
    assert await _answers(str(path))
    await first.stop()


async def test_a_server_unlinks_its_own_socket_only(node: Node) -> None:
    path = node.kubelet.device_plugins / "x.sock"
    handler = _Nothing()
    first, second = PluginServer(path, handler), PluginServer(path, handler)
    await first.ensure_reachable()
    await second.ensure_reachable()
    assert (first.is_reachable, second.is_reachable) == (False, True)
    await first.stop()
    assert second.is_reachable
    assert await _answers(str(path))
    await second.stop()
    assert not path.exists()
    assert [file.name for file in path.parent.iterdir() if file.name.startswith("x.sock")] == []


async def test_a_socket_that_cannot_be_made_is_no_end_of_the_process(tmp_path: Path) -> None:
    """As on a full disk: the registrar tries again."""
    server = PluginServer(tmp_path / "missing" / "x.sock", _Nothing())
    with pytest.raises(OSError, match=r"cannot listen on .*missing/"):
        await server.ensure_reachable()
    (tmp_path / "missing").mkdir()
    await server.ensure_reachable()
    assert server.is_reachable
    await server.stop()


class _Nothing(grpc.GenericRpcHandler):
    """Serves no method."""

    def service(self, _: grpc.HandlerCallDetails) -> None:
        return None


async def _answers(socket: str) -> bool:
    async with grpc.aio.insecure_channel(f"unix://{socket}") as channel:
        with suppress(TimeoutError):
            async with asyncio.timeout(30):
                await channel.channel_ready()
                return True
    return False
