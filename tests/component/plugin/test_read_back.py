"""The limit of a container, from the variables to what the driver says: a hook sets it, the plugin reads it.

The hook is that of the tests, and the driver's library a stub.
"""

import asyncio
from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.fakes import toolkit_hook
from tests.fakes.leaping_time import leap
from tests.fakes.limited_containers import LimitedContainers
from tests.fakes.nvml_driver import GIB, StubDriver
from tests.samples.plugin import share_node

from gpushare_core.api.enums import MemoryIsolation
from gpushare_plugin.decide.held.checkpoint import GivenIsolation
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.isolation.driver import DRIVER
from gpushare_plugin.decide.isolation.kind import (
    CardLimit,
    GrantedMemory,
    IsolatedShare,
    IsolationFacts,
    IsolationFinding,
)
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.limits import NvmlLimits
from gpushare_plugin.devices.worker import Worker
from gpushare_plugin.isolation.read_back import STARTS_WITHIN, DriverReader

UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
ID, SECOND = "a" * 64, "b" * 64
POD = PodName("default", "a")
OURS = {"GPUSHARE_ISOLATION": "Driver", "NVIDIA_GPU_MEMORY_LIMIT": "4096", "NVIDIA_GPU_MEMORY_REQUEST": "0"}


@dataclass
class KnownNames:
    """As the pod lists its containers."""

    listed: dict[str, str] = field(default_factory=lambda: {ID: "main", SECOND: "main"})
    known: dict[CgroupOwner, str] = field(default_factory=dict)

    async def look_up(self, unnamed: Mapping[CgroupOwner, PodName]) -> None:
        self.known |= {owner: self.listed.get(owner.container_id, "") for owner in unnamed}

    def forget(self, present: Collection[str]) -> None:
        self.known = {owner: name for owner, name in self.known.items() if owner.pod_uid in present}


@dataclass
class LimitedNode:
    driver: StubDriver
    containers: LimitedContainers
    reader: DriverReader
    library: NvmlLibrary
    now: list[float]

    def wait_for_driver(self, seconds: float) -> None:
        """At most, from now on."""
        later = iter(range(0, 10**6, 100))
        source = NvmlLimits(self.library, Worker("NVML"), deadline=seconds, clock=lambda: next(later))
        self.reader.open_limits = lambda: source

    async def facts(self, *cards: str) -> IsolationFacts:
        shares = [isolated(card) for card in cards or ("GPU-a",)]
        return IsolationFacts(driver=await self.reader.facts(shares))

    async def settled(self) -> IsolationFinding:
        """Of a container that has started a while ago."""
        await self.finding()
        self.now[0] += STARTS_WITHIN
        return await self.finding()

    async def finding(self, card: str = "GPU-a") -> IsolationFinding:
        return DRIVER.in_force(isolated(card), await self.facts(card))


def isolated(card: str) -> IsolatedShare:
    return IsolatedShare(
        share=ContainerShare(POD, UID, "main", card),
        given=GivenIsolation(kind=MemoryIsolation.DRIVER, memory=4 * GIB),
        numbers=array("I", [1]),
        memory=4 * GIB,
    )


@pytest.fixture
def node(tmp_path: Path) -> Iterator[LimitedNode]:
    """Of two cards, with a pod whose sandbox runs."""
    driver = StubDriver(tmp_path)
    for uuid in ("GPU-a", "GPU-b"):
        driver.add_card(uuid)
    driver.install()
    library = NvmlLibrary(str(driver.library))
    containers = LimitedContainers(tmp_path / "node", driver.library)
    containers.sandbox(UID)
    now = [0.0]
    reader = DriverReader(
        names=KnownNames(),
        open_limits=lambda: None,
        devices=lambda: share_node().spec.devices,
        kubelet_uids=dict,
        cgroups=containers.cgroups,
        clock=lambda: now[0],
    )
    node = LimitedNode(driver, containers, reader, library, now)
    node.wait_for_driver(60)
    yield node
    driver.recover()
    library.close()


async def test_the_limit_that_a_container_was_given_is_read_back(node: LimitedNode) -> None:
    granted = GrantedMemory(
        numbers=(1,), limits=(CardLimit(uuid="GPU-a", memory=4 * GIB),), context_memory=0, folder=""
    )
    given = DRIVER.equipment(granted).variables
    assert given == OURS
    assert node.containers.start(UID, ID, given, ["GPU-a"]) == ""
    node.driver.use_in(node.containers.cgroup(UID, ID), GIB)
    facts = await node.facts()
    assert DRIVER.unable(facts) is None
    assert DRIVER.in_force(isolated("GPU-a"), facts) == IsolationFinding(in_force=True, limit=4 * GIB)
    assert facts.driver.used == {isolated("GPU-a").share: GIB}


async def test_a_container_of_two_cards_has_its_limit_on_both(node: LimitedNode) -> None:
    node.containers.start(UID, ID, OURS, ["GPU-a", "GPU-b"])
    facts = await node.facts("GPU-a", "GPU-b")
    assert set(facts.driver.read_back.values()) == {4 * GIB}
    assert len(facts.driver.read_back) == 2


async def test_a_variable_that_the_pod_sets_itself_is_found(node: LimitedNode) -> None:
    node.containers.start(UID, ID, {**OURS, "NVIDIA_GPU_MEMORY_LIMIT": "16384"}, ["GPU-a"])
    found = await node.finding()
    assert found.in_force is False
    assert "the driver holds it to 16Gi and not to 4Gi" in found.seen


async def test_an_older_toolkit_is_found(node: LimitedNode) -> None:
    node.containers.toolkit = "1.19.0"
    assert node.containers.start(UID, ID, OURS, ["GPU-a"]) == ""
    found = await node.settled()
    assert found.in_force is False
    assert "no limit for it, and not 4Gi" in found.seen


async def test_a_container_whose_hook_has_not_run_yet_is_unknown_and_not_without_limit(
    node: LimitedNode,
) -> None:
    node.containers.cgroup(UID, ID).mkdir(parents=True)
    assert (await node.finding()).in_force is None
    toolkit_hook.set_limits(node.driver.library, node.containers.cgroup(UID, ID), ["GPU-a"], hard=4 * GIB)
    assert (await node.finding()).in_force is True


async def test_a_restarted_container_is_read_by_its_new_cgroup(node: LimitedNode) -> None:
    node.containers.start(UID, ID, OURS, ["GPU-a"])
    assert (await node.finding()).in_force is True
    node.containers.end(UID, ID, ["GPU-a"])
    assert (await node.finding()).in_force is True, "it has no process"
    node.containers.toolkit = "1.19.0"
    node.containers.start(UID, SECOND, OURS, ["GPU-a"])
    assert (await node.settled()).in_force is False


async def test_a_driver_before_r615_closes_the_node_and_no_container_starts(tmp_path: Path) -> None:
    driver = StubDriver(tmp_path, version="580.159.04")
    driver.add_card("GPU-a")
    driver.install()
    containers = LimitedContainers(tmp_path / "node", driver.library)
    library = NvmlLibrary(str(driver.library))
    source = NvmlLimits(library, Worker("NVML"))
    reader = DriverReader(
        names=KnownNames(),
        open_limits=lambda: source,
        devices=lambda: share_node().spec.devices,
        kubelet_uids=dict,
        cgroups=containers.cgroups,
    )
    problem = DRIVER.unable(IsolationFacts(driver=await reader.facts([])))
    assert problem
    assert problem.reason == "DriverTooOld"
    assert "the NVIDIA driver 580.159.04" in problem.message
    assert "nvmlDeviceSetMemoryLimits_v1" in containers.start(UID, ID, OURS, ["GPU-a"])
    library.close()


async def test_cgroups_of_version_1_close_the_node_and_no_container_starts(node: LimitedNode) -> None:
    (node.containers.cgroups / "cgroup.controllers").unlink()
    problem = DRIVER.unable(await node.facts())
    assert problem
    assert problem.reason == "CgroupsOfVersion1"
    assert "only supported in cgroup v2" in node.containers.start(UID, ID, OURS, ["GPU-a"])
    assert (await node.finding()).in_force is None


async def test_a_pod_without_cgroups_is_unknown(node: LimitedNode) -> None:
    node.containers.end(UID, "5" * 64)
    found = await node.finding()
    assert found.in_force is None
    assert "the plugin's pod has the node's /sys/fs/cgroup mounted" in found.seen


async def test_a_driver_that_hangs_makes_the_limit_unknown(node: LimitedNode) -> None:
    node.wait_for_driver(0.2)
    node.containers.start(UID, ID, OURS, ["GPU-a"])
    node.driver.hang("nvmlDeviceGetMemoryLimits_v1")
    found = await node.finding()
    assert (found.in_force, found.limit) == (None, 4 * GIB)


async def test_a_node_that_was_able_stays_so_while_its_driver_does_not_answer(node: LimitedNode) -> None:
    assert DRIVER.unable(await node.facts()) is None
    node.driver.hang("nvmlDeviceGetMemoryLimits_v1")
    node.containers.start(UID, ID, OURS, ["GPU-a"])
    asked = asyncio.create_task(node.facts())
    await node.driver.called("nvmlDeviceGetMemoryLimits_v1")
    leap(60)
    facts = await asked
    assert DRIVER.unable(facts) is None
    assert DRIVER.in_force(isolated("GPU-a"), facts).in_force is None


async def test_a_driver_that_has_never_answered_is_not_able(node: LimitedNode) -> None:
    node.wait_for_driver(0.2)
    node.driver.hang("nvmlDeviceGetMemoryLimits_v1")
    node.containers.start(UID, ID, OURS, ["GPU-a"])
    problem = DRIVER.unable(await node.facts())
    assert problem
    assert problem.reason == "DriverHung"


async def test_another_vendors_cards_cannot_be_limited(node: LimitedNode) -> None:
    node.reader.open_limits = lambda: None
    problem = DRIVER.unable(await node.facts())
    assert problem
    assert problem.reason == "NotNVIDIAsDriver"


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        pytest.param({}, "", id="no variables"),
        pytest.param({"NVIDIA_GPU_MEMORY_LIMIT": "1e3"}, "is no amount in MiB", id="no number"),
        pytest.param(
            {"NVIDIA_GPU_MEMORY_LIMIT": "1", "NVIDIA_GPU_MEMORY_REQUEST": "2"},
            "exceeds",
            id="more than the limit",
        ),
    ],
)
def test_the_tests_hook_does_as_nvidias(node: LimitedNode, variables: dict[str, str], error: str) -> None:
    found = node.containers.start(UID, ID, variables, ["GPU-a"])
    assert error in found
    assert bool(found) is bool(error)
