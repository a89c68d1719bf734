"""Wires the parts of the process together and runs them; if one fails, all end."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.kube.client import KubeClient
from gpushare_plugin.cluster.node_watch import NodeWatch
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.health import HealthServer
from gpushare_plugin.kubelet.allocator import Allocator
from gpushare_plugin.kubelet.bookkeeper import Bookkeeper
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.pod_resources import PodResources
from gpushare_plugin.kubelet.registration import Registrar
from gpushare_plugin.kubelet.service import DevicePlugin, handler
from gpushare_plugin.reconciler import Reconciler
from gpushare_plugin.state import NodeState

ENDPOINT = "gpushare-memory.sock"
PERIOD = 10.0
"""Seconds after which everything is looked at again although nothing changed."""
GATHER = 0.1
"""Seconds in which changes are gathered before they are acted upon together."""
STUCK_AFTER = 60.0
"""Seconds without a round of the bookkeeper after which the process counts as dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    node: str
    device_plugins: Path
    pod_resources: Path
    health_port: int


class Agent:
    """The plugin of one node."""

    def __init__(self, settings: Settings, client: KubeClient, resources: PodResources) -> None:
        state = NodeState(settings.node)
        self._settings = settings
        self._stream = DeviceStream()
        self._state = state
        self._bookkeeper = Bookkeeper(state, resources)
        self._pods = PodWatch(state, client, ended=self._bookkeeper.wake)
        self._node = NodeWatch(state, client)
        allocator = Allocator(state=state, bookkeeper=self._bookkeeper, pods=self._pods)
        self._registrar = Registrar(
            directory=settings.device_plugins,
            endpoint=ENDPOINT,
            resource=state.dialect.memory_resource,
            handler=handler(DevicePlugin(allocator, self._stream)),
            stream=self._stream,
            notify=self._registration_changed,
        )
        self._reconciler = Reconciler(
            state=state,
            client=client,
            bookkeeper=self._bookkeeper,
            stream=self._stream,
            registration=lambda: self._registrar.state,
        )

    async def run(self) -> None:
        """Never returns. Raises ``ExceptionGroup`` when a part fails."""
        probes = {"/healthz": self.sickness, "/readyz": self.unreadiness}
        async with HealthServer(self._settings.health_port, probes), asyncio.TaskGroup() as group:
            group.create_task(self._node.run(), name="node watch")
            group.create_task(self._pods.run(), name="pod watch")
            group.create_task(self._pods.run_learning(), name="pod specs")
            group.create_task(self._keep_reconciled(group), name="reconciler")
            group.create_task(self._registrar.run(), name="registrar")

    def sickness(self) -> str:
        """What ``/healthz`` complains of."""
        silent = asyncio.get_running_loop().time() - self._bookkeeper.last_round
        return f"the books were looked at {silent:.0f} s ago" if silent > STUCK_AFTER else ""

    def unreadiness(self) -> str:
        """What ``/readyz`` complains of. A node that is not to be shared is ready, too."""
        if not (self._node.synced.is_set() and self._pods.synced.is_set()):
            return "waiting for the API server"
        if self._state.offering.layout is None:
            return ""
        return self._registrar.state.message

    def _registration_changed(self) -> None:
        self._state.changed.set()
        self._bookkeeper.wake()

    async def _keep_reconciled(self, group: asyncio.TaskGroup) -> None:
        """Nothing is decided before everything was seen once; the kubelet alone may be away."""
        await self._node.synced.wait()
        await self._pods.synced.wait()
        await self._bookkeeper.refresh()
        group.create_task(self._bookkeeper.run(), name="bookkeeper")
        while True:
            self._state.changed.clear()
            await self._reconciler.reconcile()
            await self._until_changed()

    async def _until_changed(self) -> None:
        try:
            async with asyncio.timeout(PERIOD):
                await self._state.changed.wait()
            await asyncio.sleep(GATHER)
        except TimeoutError:
            return
