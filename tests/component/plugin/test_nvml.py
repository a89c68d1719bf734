"""NVML through ``pynvml`` and a real shared library, with every way in which it can fail."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest
from tests.fakes.leaping_time import leap
from tests.fakes.nvml_driver import GIB, StubDriver
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_plugin.devices.card import PhysicalCard, Reading
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.source import NvmlSource

ERRORS = {name: code for name, code in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
OF_A_CARD = ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetMemoryInfo"]
OF_ALL = ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2"]
STOPPING = {
    "NVML_ERROR_DRIVER_NOT_LOADED",
    "NVML_ERROR_LIBRARY_NOT_FOUND",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
}
each_error = pytest.mark.parametrize("error", sorted(ERRORS))


@pytest.fixture
def driver(tmp_path: Path) -> StubDriver:
    """Of two cards."""
    driver = StubDriver(tmp_path)
    driver.add_card("GPU-a")
    driver.add_card("GPU-b", gib=32, numa=1)
    driver.install()
    return driver


@pytest.fixture
def library(driver: StubDriver) -> Iterator[NvmlLibrary]:
    library = NvmlLibrary(str(driver.library))
    yield library
    driver.recover()
    library.close()


@pytest.fixture
async def source(library: NvmlLibrary) -> NvmlSource:
    return NvmlSource(library, deadline=60)


def health(reading: Reading) -> dict[str, bool]:
    return {card.uuid: card.healthy for card in reading.cards}


def reason_of(reading: Reading) -> str:
    return reading.problem.reason if reading.problem else ""


async def read_until(source: NvmlSource, done: Callable[[Reading], bool]) -> Reading:
    async with asyncio.timeout(60):
        while True:
            reading = await source.read()
            if done(reading):
                return reading
            await asyncio.sleep(0.01)


GOOD = {"GPU-a": True, "GPU-b": True}


async def test_cards_are_told_as_they_are(source: NvmlSource, driver: StubDriver) -> None:
    driver.linked = [(0, 1)]
    driver.write()
    reading = await source.read()
    shared: dict[str, Any] = {"model": "NVIDIA Stub 9", "compute_score": 900, "link_group": 0}
    assert reading == Reading(
        cards=(
            PhysicalCard(uuid="GPU-a", index=0, memory=16 * GIB, numa_node=0, **shared),
            PhysicalCard(uuid="GPU-b", index=1, memory=32 * GIB, numa_node=1, **shared),
        )
    )


async def test_one_handle_serves_all_readings(source: NvmlSource, driver: StubDriver) -> None:
    for _ in range(3):
        await source.read()
    assert driver.calls("nvmlInitWithFlags") == 1
    assert driver.calls("nvmlShutdown") == 0
    assert driver.calls("nvmlDeviceGetP2PStatus") == 1


async def test_a_card_in_mig_mode_is_left_out_with_the_reason(source: NvmlSource, driver: StubDriver) -> None:
    driver.add_card("GPU-c", mig=True)
    reading = await source.read()
    assert health(reading) == GOOD
    (left_out,) = reading.left_out
    assert (left_out.index, left_out.uuid, left_out.healthy) == (2, "GPU-c", True)
    assert "nvidia-smi -i GPU-c -mig 0" in left_out.reason


async def test_what_is_only_nice_to_know_may_be_missing(source: NvmlSource, driver: StubDriver) -> None:
    for symbol in ("GetName", "GetCudaComputeCapability", "GetMemoryAffinity", "GetP2PStatus", "GetMigMode"):
        driver.fail(f"nvmlDevice{symbol}", pynvml.NVML_ERROR_NOT_SUPPORTED)
    card = (await source.read()).cards[0]
    assert card == PhysicalCard(uuid="GPU-a", index=0, memory=16 * GIB)


@each_error
@pytest.mark.parametrize("symbol", OF_A_CARD)
async def test_an_error_of_one_card_leaves_the_good_one(
    source: NvmlSource, driver: StubDriver, symbol: str, error: str
) -> None:
    assert health(await source.read()) == GOOD
    driver.fail(symbol, ERRORS[error], card=1)
    reading = await source.read()
    if ERRORS[error] in NEVER_ONE_CARD:
        assert reading.problem
        assert health(reading).keys() == GOOD.keys()
    else:
        assert (reading.problem, health(reading)) == (None, {"GPU-a": True, "GPU-b": False})
        assert f"(NVML error {ERRORS[error]} of nvmlDeviceGet" in reading.cards[1].reason
    driver.recover()
    assert health(await source.read()) == GOOD


@each_error
@pytest.mark.parametrize("symbol", OF_ALL)
async def test_an_error_of_the_driver_is_said_and_no_card_is_withdrawn(
    source: NvmlSource, driver: StubDriver, symbol: str, error: str
) -> None:
    assert health(await source.read()) == GOOD
    driver.fail("nvmlDeviceGetCount_v2", ERRORS[error])
    driver.fail(symbol, ERRORS[error])
    await source.read()  # closes the library: only now it is initialised again
    reading = await source.read()
    assert reading.problem
    assert len(reading.problem.message) > 40
    assert health(reading) == dict.fromkeys(GOOD, error not in STOPPING)
    driver.recover()
    recovered = await source.read()
    assert (recovered.problem, health(recovered)) == (None, GOOD)


@each_error
async def test_an_error_from_the_start_tells_no_cards(
    source: NvmlSource, driver: StubDriver, error: str
) -> None:
    driver.fail("nvmlInitWithFlags", ERRORS[error])
    reading = await source.read()
    assert (reading.unknown, reading.cards) == (reading.problem, ())
    assert reading.problem
    driver.recover()
    assert health(await source.read()) == GOOD


async def test_a_card_that_was_never_known_and_fails_is_left_out(
    source: NvmlSource, driver: StubDriver
) -> None:
    driver.fail("nvmlDeviceGetHandleByIndex_v2", pynvml.NVML_ERROR_GPU_IS_LOST, card=1)
    reading = await source.read()
    assert health(reading) == {"GPU-a": True}
    (left_out,) = reading.left_out
    assert (left_out.index, left_out.uuid, left_out.healthy) == (1, "", False)
    assert "reboot the node" in left_out.reason


async def test_a_card_that_goes_and_one_that_comes_are_followed(
    source: NvmlSource, driver: StubDriver
) -> None:
    await source.read()
    driver.cards.pop(0)
    driver.add_card("GPU-c")
    reading = await source.read()
    assert [(card.index, card.uuid) for card in reading.cards] == [(0, "GPU-b"), (1, "GPU-c")]


async def test_a_driver_that_is_not_there_is_found_when_it_comes(
    source: NvmlSource, driver: StubDriver
) -> None:
    driver.remove()
    reading = await source.read()
    assert reason_of(reading) == "DriverAbsent"
    assert str(driver.library) in reading.problem.message if reading.problem else ""
    driver.install()
    assert health(await source.read()) == GOOD


async def test_after_an_upgrade_the_new_library_is_loaded(
    source: NvmlSource, driver: StubDriver, tmp_path: Path
) -> None:
    await source.read()
    driver.fail("nvmlDeviceGetCount_v2", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    assert reason_of(await source.read()) == "DriverUpgraded"
    (tmp_path / "new").mkdir()
    upgraded = StubDriver(tmp_path / "new", cards=driver.cards)
    upgraded.install()
    driver.library.unlink()
    driver.library.symlink_to(upgraded.library)
    assert health(await source.read()) == GOOD
    assert upgraded.calls("nvmlInitWithFlags") == 1


@pytest.mark.parametrize("symbol", [*OF_ALL, *OF_A_CARD])
async def test_a_call_that_never_returns_stops_nobody(
    library: NvmlLibrary, driver: StubDriver, symbol: str
) -> None:
    source = NvmlSource(library, deadline=60)
    if symbol != "nvmlInitWithFlags":
        assert health(await source.read()) == GOOD
    made = driver.calls(symbol) + 1
    driver.hang(symbol)
    asked = asyncio.create_task(source.read())
    await driver.called(symbol, made)
    leap(60)
    reading = await asked
    assert reason_of(reading) == "DriverHung"
    assert not any(health(reading).values())
    async with asyncio.timeout(50):  # not even one deadline
        for _ in range(10):
            assert reason_of(await source.read()) == "DriverHung"
    assert driver.calls(symbol) == made
    driver.recover()
    assert health(await read_until(source, lambda it: it.problem is None)) == GOOD


PROGRAM = """
import asyncio, sys
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.nvml.library import NvmlLibrary

async def main() -> None:
    reading = await NvmlSource(NvmlLibrary(sys.argv[1]), deadline=0.1).read()
    print(reading.problem.reason)

asyncio.run(main())
"""


async def test_a_process_can_end_while_a_call_never_returns(driver: StubDriver) -> None:
    driver.hang("nvmlDeviceGetCount_v2")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(driver.library), stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout=60)
    finally:
        driver.recover()  # whatever went wrong, the process is not left behind
    assert (process.returncode, output.strip()) == (0, b"DriverHung")


async def test_what_nobody_expected_is_a_problem_and_not_the_end(driver: StubDriver) -> None:
    class Broken(NvmlLibrary):
        broken = True

        def read(self):  # type: ignore[no-untyped-def]
            if self.broken:
                raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")
            return super().read()

    library = Broken(str(driver.library))
    source = NvmlSource(library)
    reading = await source.read()
    assert reason_of(reading) == "DriverError"
    library.broken = False
    assert health(await source.read()) == GOOD
    library.close()


async def test_pods_on_cards_of_nvml_stay_booked_while_one_is_lost(
    source: NvmlSource, driver: StubDriver, idle_node: Node
) -> None:
    node = idle_node
    node.open_source = lambda *_: source
    node.share(devices={"source": "NVML"})
    await node.start_plugin()
    await node.until_registered()
    assert node.share_node.status.summary == "0/16 0/32"
    await node.run_pod(pod_json("a", container(units=20)))
    await node.until("the pod", lambda: node.on_cards() == {"a": {"GPU-b": 20}})
    driver.fail("nvmlDeviceGetHandleByIndex_v2", pynvml.NVML_ERROR_GPU_IS_LOST, card=1)
    assert node.agent
    node.agent.state.changed.set()
    await node.until("the word", lambda: node.condition("CardsHealthy") == ("False", "CardsUnhealthy"))
    assert "card 1 (GPU-b): it has fallen off the bus" in node.message("CardsHealthy")
    await node.kubelet.until("the list", lambda it: list(it.devices.values()).count("Unhealthy") == 32)
    assert node.on_cards() == {"a": {"GPU-b": 20}}
    driver.recover()
    node.agent.state.changed.set()
    await node.until("health", lambda: node.condition("CardsHealthy") == ("True", "AllHealthy"))
