"""One plugin between a fake kubelet and a fake API server."""

import asyncio
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.kubelet import Admitted, FakeKubelet
from tests.fakes.patience import PATIENCE
from tests.fakes.plugin_api import PluginApi, plugin_api
from tests.samples.plugin import ANNOTATION, NODE, name_of, share_node_json

from gpushare_core.allocation_annotation import Allocation, decode_allocation
from gpushare_core.api.names import SIMULATE_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json
from gpushare_plugin.agent import Agent, Settings
from gpushare_plugin.decide.isolation.hook import LIBRARY
from gpushare_plugin.devices.card import DeviceSource
from gpushare_plugin.devices.source import DeviceSources
from gpushare_plugin.devices.use import LimitSource, UseSource
from gpushare_plugin.isolation.read_back import CGROUPS
from gpushare_plugin.kubelet.pod_resources import PodResources


@dataclass(slots=True)
class Node:
    """A node with a kubelet, and with a plugin while ``plugin`` runs."""

    kubelet: FakeKubelet
    api: PluginApi
    agent: Agent | None = None
    open_source: Callable[[GPUShareNode], DeviceSource] = field(init=False)
    open_use: Callable[[GPUShareNode], UseSource | None] = field(init=False)
    open_limits: Callable[[GPUShareNode], LimitSource | None] = field(init=False)
    cgroups: Path = CGROUPS
    """Where the node's are mounted."""
    health_port: int = 0
    isolation_folder: Path | None = None
    """Set: the plugin gets this folder of the node's for files of isolation."""
    given_back: int = 0
    """How often the agent gave back memory that is free."""
    _plugin: asyncio.Task[None] | None = field(default=None)

    def __post_init__(self) -> None:
        """Cards and their use come of one source, as in the plugin: NVML is asked through one handle."""
        sources = DeviceSources()
        self.open_source, self.open_use = sources.open, sources.open_use
        self.open_limits = sources.open_limits

    async def start_plugin(self) -> None:
        self._plugin = asyncio.create_task(self._run())

    async def stop_plugin(self) -> None:
        """As by SIGTERM."""
        if self._plugin is not None:
            self._plugin.cancel()
            with suppress(asyncio.CancelledError):
                await self._plugin
            self._plugin = None

    async def restart_plugin(self) -> None:
        """Until the kubelet has its list again."""
        await self.stop_plugin()
        await self.kubelet.until("the loss", lambda it: it.plugin is None)
        await self.start_plugin()
        await self.kubelet.until("the list", lambda it: "Healthy" in it.devices.values())

    @property
    def hook_library(self) -> Path:
        """In the plugin's image."""
        return self.kubelet.directory / "hook" / platform.machine() / LIBRARY

    async def _run(self) -> None:
        settings = Settings(
            node=NODE,
            device_plugins=self.kubelet.device_plugins,
            pod_resources=self.kubelet.pod_resources,
            health_port=self.health_port,
            cgroups=self.cgroups,
            isolation_folder=self.isolation_folder,
            hook_folder=self.hook_library.parent.parent,
        )
        async with (
            KubeClient(self.api.credentials()) as client,
            PodResources(self.kubelet.pod_resources, RESOURCES) as resources,
        ):
            self.agent = Agent(
                settings,
                client,
                resources,
                open_source=self._open_source,
                open_use=self._open_use,
                open_limits=lambda share_node: self.open_limits(share_node),
                give_back=self._give_back,
            )
            await self.agent.run()

    def _open_source(self, share_node: GPUShareNode) -> DeviceSource:
        """The one that the test has set by now."""
        return self.open_source(share_node)

    def _give_back(self) -> None:
        self.given_back += 1

    def _open_use(self, share_node: GPUShareNode) -> UseSource | None:
        return self.open_use(share_node)

    # What people and the scheduler do

    def share(self, unit: str = "1Gi", **spec: Any) -> None:
        """Create the GPUShareNode or change its spec."""
        before = self.api.objects[SHARE_NODES].get(("", NODE))
        after = share_node_json(unit, **spec)
        if before is not None:
            after["status"] = before["status"]
            after["metadata"]["generation"] = before["metadata"]["generation"] + 1
        self.api.put(SHARE_NODES, after)

    def simulate(self, happening: str) -> None:
        """What is to happen to the simulated cards."""
        self.annotate(SIMULATE_ANNOTATION, happening)

    def annotate(self, key: str, value: str) -> None:
        """As by ``kubectl annotate`` of the GPUShareNode; an empty value takes the annotation away."""
        share_node = self.api.objects[SHARE_NODES]["", NODE]
        annotations = {**share_node["metadata"].get("annotations", {}), key: value}
        share_node["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value}
        self.api.put(SHARE_NODES, share_node)

    async def run_pod(self, pod: Json) -> Admitted:
        """Bind it and have it admitted."""
        await self.kubelet.until("the devices of each plugin", lambda it: not it.awaits_devices)
        self.api.put(PODS, pod)
        return await self.kubelet.admit(pod)

    def end_pod(self, name: str) -> None:
        self.api.delete(PODS, name, "default")
        self.kubelet.pods.pop(name_of(name))

    # What there is to see

    @property
    def share_node(self) -> GPUShareNode:
        return GPUShareNode.from_json(self.api.objects[SHARE_NODES]["", NODE])

    def condition(self, kind: str) -> tuple[str, str]:
        found = {
            condition.type: (condition.status, condition.reason)
            for condition in self.share_node.status.conditions
        }
        return found.get(kind, ("", ""))

    def message(self, kind: str) -> str:
        return next(
            (condition.message for condition in self.share_node.status.conditions if condition.type == kind),
            "",
        )

    def knows(self, name: str) -> bool:
        """Whether the plugin has read what this pod asks for."""
        pod = self.agent.state.pods.get(name_of(name)) if self.agent else None
        return pod is not None and pod.request is not None

    def allocation(self, name: str) -> Allocation | None:
        metadata = self.api.pod(name)["metadata"]
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        return decode_allocation(text, uid=metadata["uid"]) if text else None

    def on_cards(self) -> dict[str, dict[str, int]]:
        """Pod -> card -> units, by the status."""
        found: dict[str, dict[str, int]] = {}
        for card in self.share_node.status.cards:
            for share in card.pods:
                cards = found.setdefault(share.name, {})
                cards[card.uuid] = cards.get(card.uuid, 0) + share.units
        return found

    async def until(self, what: str, condition: Callable[[], bool], within: float = PATIENCE) -> None:
        """Wait for something to be seen; a plugin that died ends the wait with its error."""
        deadline = asyncio.get_running_loop().time() + within
        while not condition():
            if self._plugin is not None and self._plugin.done():
                self._plugin.result()
            assert asyncio.get_running_loop().time() < deadline, f"waited {within} s for {what}"
            await asyncio.sleep(0.01)

    async def until_registered(self) -> None:
        await self.until("the registration", lambda: self.condition("Registered") == ("True", "Registered"))


@asynccontextmanager
async def running_node(directory: Path) -> AsyncIterator[Node]:
    """A kubelet, an API server and a GPUShareNode of two cards with 16 units each; no plugin yet."""
    async with plugin_api() as api:
        kubelet = FakeKubelet(directory)
        await kubelet.start()
        node = Node(kubelet, api)
        node.share()
        try:
            yield node
        finally:
            await node.stop_plugin()
            await kubelet.stop()
