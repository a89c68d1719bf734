"""What NVML tells of the health of cards: Xid events, failed remapping, recovery actions."""

import asyncio
from threading import Thread

import pynvml
import pytest
from tests.component.plugin.test_nvml import ERRORS, GOOD, driver, health, library, read_until, reason_of
from tests.fakes.nvml_driver import StubDriver
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_plugin.devices.card import CardEvent
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.source import NvmlSource

EVENTS = ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait_v2", "nvmlEventSetFree"]
PROOFS = ["nvmlDeviceGetRemappedRows", "nvmlDeviceGetFieldValues", "RecoveryAction"]
__all__ = ["driver", "library"]
NOT_KNOWN = {
    "NVML_ERROR_NOT_SUPPORTED",
    "NVML_ERROR_FUNCTION_NOT_FOUND",
    "NVML_ERROR_INVALID_ARGUMENT",
}
each_error = pytest.mark.parametrize("error", sorted(ERRORS))


@pytest.fixture
async def source(library: NvmlLibrary) -> NvmlSource:
    """It is asked for everything: the thread looks for no events by itself."""
    source = NvmlSource(library, deadline=60, period=3600)
    assert health(await source.read()) == GOOD
    return source


async def test_an_event_is_told_once_and_of_its_card(source: NvmlSource, driver: StubDriver) -> None:
    driver.xid(1, 79)
    driver.xid(0, 31)
    assert (await source.read()).events == (CardEvent("GPU-b", 79), CardEvent("GPU-a", 31))
    assert (await source.read()).events == ()


async def test_an_event_of_a_card_that_nobody_knows_may_be_of_any(
    source: NvmlSource, driver: StubDriver
) -> None:
    driver.xid(7, 79)
    assert (await source.read()).events == (CardEvent("", 79),)


async def test_a_storm_is_told_in_few_words(source: NvmlSource, driver: StubDriver) -> None:
    driver.xids += [(1, 48)] * 300
    driver.xid(1, 79)
    assert (await source.read()).events == (CardEvent("GPU-b", 48), CardEvent("GPU-b", 79))


async def test_who_waits_is_woken_by_an_event(library: NvmlLibrary, driver: StubDriver) -> None:
    woken = asyncio.Event()
    source = NvmlSource(library, period=0.01, happened=woken.set)
    await source.read()
    driver.xid(1, 79)
    await asyncio.wait_for(woken.wait(), timeout=20)
    assert (await source.read()).events == (CardEvent("GPU-b", 79),)


async def test_events_are_followed_by_one_set_while_the_cards_are_the_same(
    source: NvmlSource, driver: StubDriver
) -> None:
    for _ in range(3):
        await source.read()
    assert driver.calls("nvmlEventSetCreate") == 1
    driver.add_card("GPU-c")
    await source.read()
    driver.xid(2, 48)
    assert (await source.read()).events == (CardEvent("GPU-c", 48),)
    assert (driver.calls("nvmlEventSetCreate"), driver.calls("nvmlEventSetFree")) == (1, 0)


@each_error
@pytest.mark.parametrize("symbol", EVENTS)
async def test_cards_serve_where_events_cannot_be_followed(
    library: NvmlLibrary, driver: StubDriver, symbol: str, error: str
) -> None:
    source = NvmlSource(library, period=3600)
    driver.fail(symbol, ERRORS[error])
    for _ in range(3):
        reading = await source.read()
        assert (reading.problem, health(reading), reading.events) == (None, GOOD, ())
    driver.recover()
    driver.add_card("GPU-c")  # whatever was not to be had is asked for anew
    await source.read()
    driver.xid(0, 79)
    assert (await source.read()).events == (CardEvent("GPU-a", 79),)


@pytest.mark.parametrize("symbol", ["nvmlEventSetCreate", "nvmlDeviceRegisterEvents"])
async def test_events_that_could_not_be_followed_for_a_moment_are_followed_then(
    library: NvmlLibrary, driver: StubDriver, symbol: str
) -> None:
    source = NvmlSource(library, period=3600)
    driver.fail(symbol, pynvml.NVML_ERROR_UNKNOWN)
    await source.read()
    driver.recover()
    await source.read()
    driver.xid(0, 79)
    assert (await source.read()).events == (CardEvent("GPU-a", 79),)


async def test_a_card_that_cannot_be_followed_loses_no_event_of_another(
    source: NvmlSource, driver: StubDriver
) -> None:
    """Nor does one that comes: what happens while the cards are read is in the next reading."""
    driver.add_card("GPU-c")
    driver.fail("nvmlDeviceRegisterEvents", pynvml.NVML_ERROR_UNKNOWN)
    await source.read()
    driver.xid(1, 79)
    library = source._library
    assert isinstance(library, NvmlLibrary)
    library.read()  # nobody has collected before
    assert (await source.read()).events == (CardEvent("GPU-b", 79),)


async def test_a_driver_that_is_loaded_again_is_followed_again(
    source: NvmlSource, driver: StubDriver
) -> None:
    driver.fail("nvmlDeviceGetCount_v2", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    assert reason_of(await source.read()) == "DriverNotLoaded"
    driver.recover()
    await source.read()
    driver.xid(1, 79)
    assert (await source.read()).events == (CardEvent("GPU-b", 79),)


async def test_looking_for_events_that_hangs_is_a_driver_that_hangs(
    library: NvmlLibrary, driver: StubDriver
) -> None:
    source = NvmlSource(library, deadline=0.2, period=0.01)
    assert health(await read_until(source, lambda it: it.problem is None)) == GOOD
    driver.hang("nvmlEventSetWait_v2")
    assert reason_of(await read_until(source, lambda it: it.problem is not None)) == "DriverHung"
    driver.recover()
    assert health(await read_until(source, lambda it: it.problem is None)) == GOOD


async def test_the_library_is_not_unloaded_under_a_call(library: NvmlLibrary, driver: StubDriver) -> None:
    """The call would return into code that is no more, and end the process."""
    source = NvmlSource(library, deadline=0.2, period=0.01)
    assert health(await read_until(source, lambda it: it.problem is None)) == GOOD
    driver.hang("nvmlEventSetWait_v2")
    assert reason_of(await read_until(source, lambda it: it.problem is not None)) == "DriverHung"
    closing = Thread(target=library.close, daemon=True)
    closing.start()
    await asyncio.to_thread(closing.join, 0.2)
    assert closing.is_alive()
    driver.recover()
    await asyncio.to_thread(closing.join, 60)
    assert not closing.is_alive()


@pytest.mark.parametrize(
    ("action", "word"),
    [
        (1, "nvidia-smi --gpu-reset -i GPU-b"),
        (2, "a reboot of the node"),
        (3, "direct traffic"),
        (4, "its pods end, and then a reset"),
        (5, "IMEX"),
        (6, "bus"),
        (7, "system"),
        (77, "recovery action 77: see `nvidia-smi -q`"),
    ],
)
async def test_a_recovery_action_is_a_repair_that_is_due(
    source: NvmlSource, driver: StubDriver, action: int, word: str
) -> None:
    driver.ask_for(action, card=1)
    first, second = (await source.read()).cards
    assert first.repair is None
    assert second.repair
    assert second.repair.reason == "RecoveryActionDue"
    assert word in second.repair.message
    driver.ask_for(0, card=1)
    assert (await source.read()).cards[1].repair is None


async def test_memory_that_could_not_be_remapped_is_a_repair_that_is_due(
    source: NvmlSource, driver: StubDriver
) -> None:
    driver.remapping[1] = 1
    driver.write()
    first, second = (await source.read()).cards
    assert first.repair is None
    assert second.repair
    assert second.repair.reason == "RowRemappingFailed"


@each_error
@pytest.mark.parametrize("symbol", PROOFS)
async def test_what_a_driver_does_not_know_is_lived_without_and_no_answer_is_no_proof(
    source: NvmlSource, driver: StubDriver, symbol: str, error: str
) -> None:
    driver.fail(symbol, ERRORS[error], card=1)
    reading = await source.read()
    if ERRORS[error] in NEVER_ONE_CARD:
        assert reading.problem
        return
    assert (reading.problem, health(reading)) == (None, GOOD)
    assert [card.unproven for card in reading.cards] == [False, error not in NOT_KNOWN]


@pytest.fixture
async def node(library: NvmlLibrary, idle_node: Node) -> Node:
    """Its cards are those of the driver; a pod has 20 units of the second.

    The plugin ends before the library is closed: it would open it again, beside that of the next test.
    """
    node, changed = idle_node, asyncio.Event()
    source = NvmlSource(library, period=0.05, happened=lambda: changed.set())
    node.open_source = lambda *_: source
    node.share(devices={"source": "NVML", "health": {"quietSeconds": 2}})
    await node.start_plugin()
    await node.until_registered()
    assert node.agent
    changed = node.agent.state.changed
    await node.run_pod(pod_json("a", container(units=20)))
    await node.until("the pod", lambda: node.on_cards() == {"a": {"GPU-b": 20}})
    return node


async def look_again(node: Node, driver: StubDriver) -> None:
    """Until the plugin has asked for the cards once more."""
    before = driver.calls("nvmlDeviceGetCount_v2")
    assert node.agent
    node.agent.state.changed.set()
    await node.until("a look", lambda: driver.calls("nvmlDeviceGetCount_v2") > before)


async def test_a_card_of_nvml_falls_sick_under_a_pod_and_returns_by_proof(
    node: Node, driver: StubDriver
) -> None:
    driver.ask_for(1, card=1)
    driver.xid(1, 79)
    await node.until("the word", lambda: node.condition("CardsHealthy") == ("False", "CardsUnhealthy"))
    await node.until("the repair", lambda: "nvidia-smi --gpu-reset" in node.message("CardsHealthy"))
    (fault,) = node.share_node.status.faults
    assert (fault.uuid, fault.reason, fault.quiet_since) == ("GPU-b", "RecoveryActionDue", "")
    assert node.on_cards() == {"a": {"GPU-b": 20}}
    driver.ask_for(0, card=1)
    await look_again(node, driver)
    await node.until("health", lambda: node.condition("CardsHealthy") == ("True", "AllHealthy"))
    assert node.share_node.status.faults[0].cleared_by == "QuietTime"


async def test_odd_errors_that_pass_change_nothing_at_the_kubelet(node: Node, driver: StubDriver) -> None:
    lists = len(node.kubelet.lists)
    for _ in range(8):
        driver.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_UNKNOWN, card=1)
        await look_again(node, driver)
        driver.recover()
        await look_again(node, driver)
    assert len(node.kubelet.lists) == lists
    assert node.condition("CardsHealthy") == ("True", "AllHealthy")
    assert node.share_node.status.faults == []


async def test_an_odd_error_that_stays_is_a_fault(node: Node, driver: StubDriver) -> None:
    driver.fail("nvmlDeviceGetMemoryInfo", pynvml.NVML_ERROR_UNKNOWN, card=1)
    await look_again(node, driver)
    await node.until("the word", lambda: node.condition("CardsHealthy") == ("False", "CardsUnhealthy"))
    assert "(NVML error 999 of nvmlDeviceGetMemoryInfo)" in node.message("CardsHealthy")
