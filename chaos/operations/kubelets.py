"""Kubelets end, stop, pause and forget, and what they share with plugins goes away.

While a kubelet is stopped or paused its PodResources cannot be read: of that node the audit has no book of
the kubelet's then. One that starts without its checkpoint holds nothing for the containers that go on: until
these are gone the kubelet's books say less than is true, and the other ones must not follow them.
"""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from random import Random

from chaos.operation import Fault, Kind, Operation
from chaos.operations import static_pods
from chaos.operations.recovery import await_node
from chaos.plan.known import WORKERS, Known
from chaos.world import NAMESPACE, World
from gpushare_core.kube.paths import pods
from gpushare_core.kube.request import ApiRequest
from gpushare_localcluster.errors import LocalClusterError

PLUGINS = "/var/lib/kubelet/device-plugins"
CHECKPOINT = f"{PLUGINS}/kubelet_internal_checkpoint"
KUBELET_SOCKET = f"{PLUGINS}/kubelet.sock"
POD_RESOURCES = "/var/lib/kubelet/pod-resources/kubelet.sock"
AWAY = (1.0, 8.0)
"""Seconds."""
STUTTER = (0.6, 0.2)
"""Seconds of each pause of a slow kubelet, and of its work in between."""


class Damage(StrEnum):
    """What becomes of the checkpoint."""

    DELETED = "deleted"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    GARBAGE = "garbage"


class _OnNode(Fault, frozen=True, kw_only=True):
    node: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"node/{self.node}"})


class KillKubelet(_OnNode, frozen=True, kw_only=True, tag="kubelet.kill"):
    """It crashes and is started again."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.restart_kubelet, self.node)

    async def heal(self, world: World) -> None:
        await await_node(world, self.node)


class StopKubelet(_OnNode, frozen=True, kw_only=True, tag="kubelet.stop"):
    """It is stopped in good order, as for an upgrade; containers go on."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.stop_kubelet, self.node)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.start_kubelet, self.node)
        await await_node(world, self.node)


class PauseKubelet(_OnNode, frozen=True, kw_only=True, tag="kubelet.pause"):
    """It stands still: its sockets take connections and answer nothing."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.signal_kubelet, self.node, signal.SIGSTOP)

    async def heal(self, world: World) -> None:
        await wake(world, self.node)
        await await_node(world, self.node)


class SlowKubelet(_OnNode, frozen=True, kw_only=True, tag="kubelet.slow"):
    """It answers everything, PodResources too, a second late."""

    async def run(self, world: World) -> None:
        pause, work = STUTTER
        end = asyncio.get_running_loop().time() + self.seconds
        while asyncio.get_running_loop().time() < end:
            await world.thread(world.cluster.signal_kubelet, self.node, signal.SIGSTOP)
            await asyncio.sleep(pause)
            await wake(world, self.node)
            await asyncio.sleep(work)

    async def heal(self, world: World) -> None:
        await wake(world, self.node)


class ForgetfulKubelet(_OnNode, frozen=True, kw_only=True, tag="kubelet.forget"):
    """The kubelet starts without a readable checkpoint. Only draining the node mends that."""

    damage: Damage

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.stop_kubelet, self.node)
        spoil(world.node_file(self.node, CHECKPOINT), self.damage)
        await world.thread(world.cluster.start_kubelet, self.node)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.start_kubelet, self.node)
        await drain(world, self.node)
        await await_node(world, self.node)


class RemovePluginSockets(_OnNode, frozen=True, kw_only=True, tag="sockets.plugins"):
    """Everything that plugins listen on is deleted."""

    async def run(self, world: World) -> None:
        kubelet = world.node_file(self.node, KUBELET_SOCKET)
        for path in kubelet.parent.iterdir():
            if path.is_socket() and path != kubelet:
                path.unlink(missing_ok=True)


class RemoveKubeletSocket(_OnNode, frozen=True, kw_only=True, tag="sockets.kubelet"):
    """Nobody can register any more, until the kubelet is started again."""

    async def run(self, world: World) -> None:
        world.node_file(self.node, KUBELET_SOCKET).unlink(missing_ok=True)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.restart_kubelet, self.node)
        await await_node(world, self.node)


class HidePodResources(_OnNode, frozen=True, kw_only=True, tag="sockets.pod-resources"):
    """Removes the socket of PodResources. Only clients that are connected go on reading."""

    async def run(self, world: World) -> None:
        socket = world.node_file(self.node, POD_RESOURCES)
        with contextlib.suppress(FileNotFoundError):
            socket.rename(hidden(socket))

    async def heal(self, world: World) -> None:
        """A kubelet that was started since has made another one."""
        socket = world.node_file(self.node, POD_RESOURCES)
        with contextlib.suppress(FileNotFoundError):
            if socket.exists():
                hidden(socket).unlink()
            else:
                hidden(socket).rename(socket)


def hidden(socket: Path) -> Path:
    return socket.with_name("hidden.sock")


def spoil(checkpoint: Path, damage: Damage) -> None:
    """One that is not there stays so."""
    if not checkpoint.exists():
        return
    match damage:
        case Damage.DELETED:
            checkpoint.unlink()
        case Damage.EMPTY:
            checkpoint.write_bytes(b"")
        case Damage.TRUNCATED:
            content = checkpoint.read_bytes()
            checkpoint.write_bytes(content[: len(content) // 2])
        case Damage.GARBAGE:
            checkpoint.write_bytes(b"\x00\xff{]" * 97)


async def wake(world: World, node: str) -> None:
    """A kubelet that has ended meanwhile, with its node or alone, is started and not paused."""
    with contextlib.suppress(LocalClusterError):
        await world.thread(world.cluster.signal_kubelet, node, signal.SIGCONT)


async def drain(world: World, node: str) -> None:
    """Ends every pod of ours on ``node``. Static pods are ended by their files: deleting a mirror ends
    nothing."""
    await static_pods.end_all(world, node)
    here = await world.client.send(
        ApiRequest(path=pods(NAMESPACE), params={"fieldSelector": f"spec.nodeName={node}"})
    )
    names = [item["metadata"]["name"] for item in here["items"]]
    world.drained.update(names)
    await world.together(world.delete_pod(name) for name in names)


Draw = Callable[[Random, Known], Operation]


def draw_once(operation: type[KillKubelet] | type[RemovePluginSockets]) -> Draw:
    return lambda random, _: operation(node=random.choice(WORKERS))


def draw_lasting(operation: type[_OnNode]) -> Draw:
    return lambda random, _: operation(node=random.choice(WORKERS), seconds=round(random.uniform(*AWAY), 1))


def draw_forgetful(random: Random, _: Known) -> Operation:
    return ForgetfulKubelet(
        node=random.choice(WORKERS),
        damage=random.choice(list(Damage)),
        seconds=round(random.uniform(*AWAY), 1),
    )


KINDS = (
    Kind(operation=KillKubelet, weight=3, draw=draw_once(KillKubelet)),
    Kind(operation=RemovePluginSockets, weight=1, draw=draw_once(RemovePluginSockets)),
    *(
        Kind(operation=operation, weight=2, draw=draw_lasting(operation))
        for operation in (StopKubelet, PauseKubelet)
    ),
    *(
        Kind(operation=operation, weight=1, draw=draw_lasting(operation))
        for operation in (SlowKubelet, RemoveKubeletSocket, HidePodResources)
    ),
    Kind(operation=ForgetfulKubelet, weight=1, draw=draw_forgetful),
)
