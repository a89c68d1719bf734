"""A whole plugin on a node whose driver limits: what a container is given, and what is told of it.

The runtime with NVIDIA's toolkit, the driver's library and the node's cgroups are those of the tests.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.api_server import EVENTS
from tests.fakes.limited_containers import LimitedContainers
from tests.fakes.nvml_driver import GIB, StubDriver
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, name_of, pod_json

from gpushare_plugin.devices.nvml import limits as nvml_limits
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.limits import NvmlLimits
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.nvml.use import NvmlUse
from gpushare_plugin.isolation import read_back

UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
ID = "a" * 64
DRIVER: dict[str, Any] = {"devices": {"source": "NVML"}, "isolation": {"memory": "Driver"}}
READY = ("True", "Driver")


@dataclass
class DriverNode:
    node: Node
    driver: StubDriver
    containers: LimitedContainers

    async def run(self, *, units: int = 4, **own: str) -> dict[str, str]:
        """Runs a pod whose container sets variables of its ``own``. Returns what the plugin gave it."""
        pod = pod_json("a", container(units=units), uid=UID)
        pod["status"]["containerStatuses"] = [{"name": "main", "containerID": f"containerd://{ID}"}]
        admitted = await self.node.run_pod(pod)
        given = dict(admitted.variables["main"])
        self.containers.sandbox(UID)
        # The kubelet puts a pod's own variables after those of plugins, and the last one counts.
        assert self.containers.start(UID, ID, {**given, **own}, ["GPU-a"]) == ""
        return given

    async def until_in_force(self, status: str) -> str:
        node = self.node

        def holds() -> bool:
            assert node.agent
            node.agent.state.changed.set()  # another round, before it is due
            return node.condition("IsolationInForce")[0] == status

        await node.until(f"IsolationInForce {status}", holds)
        return node.message("IsolationInForce")


@asynccontextmanager
async def started(node: Node, driver: StubDriver, containers: LimitedContainers) -> AsyncIterator[None]:
    """A process knows one library of the driver: it is closed before the next test."""
    library = NvmlLibrary(str(driver.library))
    source = NvmlSource(library)
    use, limits = NvmlUse(library, source.worker), NvmlLimits(library, source.worker)
    node.open_source, node.open_use = lambda _: source, lambda _: use
    node.open_limits, node.cgroups = lambda _: limits, containers.cgroups
    node.share(**DRIVER)
    await node.start_plugin()
    yield
    driver.recover()
    await node.stop_plugin()
    library.close()


def installed(folder: Path, version: str = "615.71.09") -> StubDriver:
    driver = StubDriver(folder, version=version)
    driver.add_card("GPU-a")
    driver.install()
    return driver


@pytest.fixture
async def limited(
    idle_node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[DriverNode]:
    monkeypatch.setattr(nvml_limits, "INTERVAL", 0.1)
    monkeypatch.setattr(read_back, "STARTS_WITHIN", 2.0)
    driver = installed(tmp_path)
    containers = LimitedContainers(tmp_path / "node", driver.library)
    async with started(idle_node, driver, containers):
        await idle_node.until("IsolationReady", lambda: idle_node.condition("IsolationReady") == READY)
        await idle_node.until_registered()
        yield DriverNode(idle_node, driver, containers)


async def test_a_container_is_given_two_variables_and_its_limit_is_read_back(limited: DriverNode) -> None:
    given = await limited.run()
    assert given["GPUSHARE_ISOLATION"] == "Driver"
    assert (given["NVIDIA_GPU_MEMORY_LIMIT"], given["NVIDIA_GPU_MEMORY_REQUEST"]) == ("4096", "0")
    await limited.until_in_force("True")
    (share,) = limited.node.share_node.status.cards[0].pods
    assert share.isolation == "Driver"
    assert limited.node.share_node.status.isolation == "Driver"


async def test_a_limit_that_the_pod_sets_itself_is_named_with_an_event(limited: DriverNode) -> None:
    await limited.run(NVIDIA_GPU_MEMORY_LIMIT="16384")
    message = await limited.until_in_force("False")
    assert "container main of pod default/a" in message
    assert "the driver holds it to 16Gi and not to 4Gi (does the pod set NVIDIA_GPU_MEMORY_LIMIT" in message
    events = limited.node.api.objects[EVENTS]
    await limited.node.until("the Event", lambda: len(events) == 1)
    assert [event["reason"] for event in events.values()] == ["IsolationNotInForce"]


async def test_a_container_of_an_older_toolkit_is_named(limited: DriverNode) -> None:
    limited.containers.toolkit = "1.19.0"
    await limited.run()
    assert "the driver has no limit for it, and not 4Gi" in await limited.until_in_force("False")


async def test_the_driver_says_what_a_container_uses_where_no_process_is_seen(limited: DriverNode) -> None:
    await limited.run()
    await limited.until_in_force("True")
    limited.driver.use_in(limited.containers.cgroup(UID, ID), 3 * GIB)
    limited.node.share(**DRIVER, measurement={"scope": "Containers", "intervalSeconds": 10})

    def used() -> list[str]:
        return [pod.used_memory for pod in limited.node.share_node.status.cards[0].pods]

    await limited.node.until("the use", lambda: used() == ["3Gi"])


async def test_a_driver_before_r615_closes_its_cards_and_says_so(idle_node: Node, tmp_path: Path) -> None:
    driver = installed(tmp_path, "580.159.04")
    expected = ("False", "DriverTooOld")
    async with started(idle_node, driver, LimitedContainers(tmp_path / "node", driver.library)):
        await idle_node.until("the condition", lambda: idle_node.condition("IsolationReady") == expected)
        assert "580.159.04" in idle_node.message("IsolationReady")
        assert idle_node.share_node.status.isolation == "Unavailable"


async def test_what_a_container_was_given_stays_when_the_policy_changes(limited: DriverNode) -> None:
    await limited.run(NVIDIA_GPU_MEMORY_LIMIT="16384")
    await limited.until_in_force("False")
    limited.node.share(devices={"source": "NVML"})
    await limited.node.until("no condition", lambda: limited.node.condition("IsolationReady") == ("", ""))
    assert limited.node.share_node.status.cards[0].pods[0].isolation == "Driver"
    assert name_of("a") in limited.node.kubelet.pods
