"""Machines lose their power, are shut down, come back, are replaced; the control plane's processes end."""

import signal
from collections.abc import Callable
from random import Random

from chaos.operation import Fault, Kind, Operation
from chaos.operations.kubelets import drain
from chaos.operations.recovery import await_node
from chaos.plan.known import CONTROL_PLANES, WORKERS, Known
from chaos.world import World, node_config
from gpushare_core.kube.paths import NODES
from gpushare_localcluster.errors import LocalClusterError

ETCD, CONTROLLER_MANAGER = "etcd", "kube-controller-manager"
OFF = (0.5, 6.0)
"""Seconds."""
UNNOTICED = (1.0, 8.0)
"""Seconds that nobody looks after the Node."""


class _Machine(Fault, frozen=True, kw_only=True):
    node: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"node/{self.node}"})


class CutPower(_Machine, frozen=True, kw_only=True, tag="node.power-cut"):
    """Every process of it ends at once; its files stay."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.kill_node, self.node)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.start_node, self.node)
        await await_node(world, self.node)


class ShutDown(_Machine, frozen=True, kw_only=True, tag="node.shutdown"):
    """The machine is shut down in good order, as for a reboot: its containers may end by themselves."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.stop_node, self.node)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.start_node, self.node)
        await await_node(world, self.node)


class Replace(_Machine, frozen=True, kw_only=True, tag="node.replace"):
    """It leaves the cluster with its files, and another one joins under its name at once.

    A kubelet without a checkpoint starts pods that are bound to it before it knows of any plugin: they run
    without their units. In the end the node is drained, as it should have been before.
    """

    @property
    def touches(self) -> frozenset[str]:
        """A control plane takes its manifests along."""
        return super().touches | ({"manifests"} if self.node in CONTROL_PLANES else set())

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.remove_node, self.node)
        await self._add(world)

    async def heal(self, world: World) -> None:
        """The call may have been given up between the two."""
        try:
            await world.thread(world.cluster.node, self.node)
        except LocalClusterError:
            await self._add(world)
        await await_node(world, self.node)
        await drain(world, self.node)

    async def _add(self, world: World) -> None:
        await world.thread(world.cluster.add_node, node_config(self.node))
        if self.node in CONTROL_PLANES:
            files = await world.thread(world.control_plane_files)
            world.before = {**world.before, self.node: files[self.node]}


class ForgetNode(_Machine, frozen=True, kw_only=True, tag="node.forget"):
    """The Node object is deleted while its kubelet runs, which creates another one only when it starts."""

    async def run(self, world: World) -> None:
        await world.client.delete(f"{NODES}/{self.node}")

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.restart_kubelet, self.node)
        await await_node(world, self.node)


class KillEtcd(Fault, frozen=True, kw_only=True, tag="etcd.kill"):
    """The process crashes and is started again: for a moment the API server responds with errors."""

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.kill_component, ETCD)


class KillControllerManager(Fault, frozen=True, kw_only=True, tag="controller-manager.kill"):
    """It crashes and is started again."""

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({CONTROLLER_MANAGER})

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.kill_component, CONTROLLER_MANAGER)


class PauseControllerManager(Fault, frozen=True, kw_only=True, tag="controller-manager.pause"):
    """No controller works: Jobs, DaemonSets and lost pods wait."""

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({CONTROLLER_MANAGER})

    async def run(self, world: World) -> None:
        await world.thread(world.cluster.signal_component, CONTROLLER_MANAGER, signal.SIGSTOP)

    async def heal(self, world: World) -> None:
        await world.thread(world.cluster.signal_component, CONTROLLER_MANAGER, signal.SIGCONT)


Draw = Callable[[Random, Known], Operation]


def draw_off(operation: type[CutPower] | type[ShutDown]) -> Draw:
    """Mostly a worker: there the cards are."""
    return lambda random, _: operation(
        node=random.choice((*WORKERS, *WORKERS, *CONTROL_PLANES)), seconds=round(random.uniform(*OFF), 1)
    )


def draw_replace(random: Random, _: Known) -> Operation:
    return Replace(node=random.choice((*WORKERS, *CONTROL_PLANES)))


def draw_forget(random: Random, _: Known) -> Operation:
    return ForgetNode(node=random.choice(WORKERS), seconds=round(random.uniform(*UNNOTICED), 1))


def draw_etcd(_: Random, __: Known) -> Operation:
    return KillEtcd()


def draw_controller_manager(_: Random, __: Known) -> Operation:
    return KillControllerManager()


def draw_pause(random: Random, _: Known) -> Operation:
    return PauseControllerManager(seconds=round(random.uniform(*UNNOTICED), 1))


KINDS = (
    Kind(operation=CutPower, weight=1.5, draw=draw_off(CutPower), at_most=60),
    Kind(operation=ShutDown, weight=0.5, draw=draw_off(ShutDown), at_most=20),
    Kind(operation=Replace, weight=0.4, draw=draw_replace, at_most=12),
    Kind(operation=ForgetNode, weight=0.5, draw=draw_forget, at_most=20),
    Kind(operation=KillEtcd, weight=0.7, draw=draw_etcd),
    Kind(operation=KillControllerManager, weight=0.7, draw=draw_controller_manager),
    Kind(operation=PauseControllerManager, weight=0.5, draw=draw_pause),
)
