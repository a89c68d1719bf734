"""Limits on the memory of cgroups as NVML tells them, through ``pynvml`` and a real shared library."""

from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest
from tests.fakes.nvml_driver import GIB, StubDriver
from tests.fakes.toolkit_hook import set_limits

from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.limits import INTERVAL, NvmlLimits
from gpushare_plugin.devices.nvml.limits_library import nvml_limits
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.use import NO_LIMIT, CardCgroup, CgroupMemory, MemoryLimits

ERRORS = {name: code for name, code in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
WITHOUT_LIMIT = {"NVML_ERROR_NOT_FOUND", "NVML_ERROR_NOT_SUPPORTED"}
GET, SET = "nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceSetMemoryLimits_v1"


@pytest.fixture
def driver(tmp_path: Path) -> StubDriver:
    """Of two cards."""
    driver = StubDriver(tmp_path)
    driver.add_card("GPU-a")
    driver.add_card("GPU-b")
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
    source = NvmlSource(library)
    await source.read()
    return source


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    folder = tmp_path / "cgroups" / "pod" / "container"
    folder.mkdir(parents=True)
    return folder


def on(cgroup: Path, card: str = "GPU-a") -> CardCgroup:
    return CardCgroup(card, str(cgroup))


@pytest.mark.usefixtures("source")
def test_a_limit_is_read_back_with_what_is_used_of_it(driver: StubDriver, cgroup: Path) -> None:
    set_limits(driver.library, cgroup, ["GPU-a"], hard=4 * GIB)
    driver.use_in(cgroup, GIB)
    found = nvml_limits([on(cgroup), on(cgroup, "GPU-b")])
    assert found == MemoryLimits(
        version="615.71.09",
        supported=True,
        cgroups={
            on(cgroup): CgroupMemory(limit=4 * GIB, used=GIB),
            on(cgroup, "GPU-b"): CgroupMemory(limit=NO_LIMIT),
        },
    )


@pytest.mark.usefixtures("source")
def test_a_cgroup_below_one_with_a_limit_has_that_limit(driver: StubDriver, cgroup: Path) -> None:
    set_limits(driver.library, cgroup.parent, ["GPU-a"], hard=4 * GIB)
    assert nvml_limits([on(cgroup)]).cgroups[on(cgroup)].limit == 4 * GIB


@pytest.mark.usefixtures("source")
def test_a_limit_that_was_taken_back_is_none(driver: StubDriver, cgroup: Path) -> None:
    for hard in (4 * GIB, NO_LIMIT):
        set_limits(driver.library, cgroup, ["GPU-a"], hard=hard)
    assert nvml_limits([on(cgroup)]).cgroups == {on(cgroup): CgroupMemory(limit=NO_LIMIT)}


@pytest.mark.usefixtures("source")
def test_a_cgroup_that_has_gone_is_left_out(cgroup: Path) -> None:
    cgroup.rmdir()
    found = nvml_limits([on(cgroup)])
    assert (found.supported, found.cgroups, found.problem) == (True, {}, None)


def test_a_driver_before_r615_cannot_limit(tmp_path: Path, cgroup: Path) -> None:
    driver = StubDriver(tmp_path, version="580.159.04")
    driver.add_card("GPU-a")
    driver.install()
    library = NvmlLibrary(str(driver.library))
    library.read()
    assert library.limits([on(cgroup)]) == MemoryLimits(version="580.159.04", supported=False)
    library.close()


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("error", sorted(ERRORS))
@pytest.mark.parametrize("symbol", [GET, "nvmlDeviceGetHandleByUUID"])
def test_every_error_is_no_limit_or_unknown_and_never_a_limit(
    driver: StubDriver, cgroup: Path, symbol: str, error: str
) -> None:
    for name in ("GPU-a", "GPU-b"):
        set_limits(driver.library, cgroup, [name], hard=4 * GIB)
    driver.fail(symbol, ERRORS[error], card=0)
    found = nvml_limits([on(cgroup), on(cgroup, "GPU-b")])
    if symbol == GET and error in WITHOUT_LIMIT:
        assert found.cgroups[on(cgroup)] == CgroupMemory(limit=NO_LIMIT)
        return
    assert on(cgroup) not in found.cgroups
    assert found.problem
    if ERRORS[error] in NEVER_ONE_CARD:
        assert found.supported is None
    else:
        assert "nvidia-smi memory-limits --get" in found.problem.message
        assert found.cgroups[on(cgroup, "GPU-b")].limit == 4 * GIB


async def test_the_driver_is_asked_again_about_other_cgroups_or_after_a_while(
    driver: StubDriver, library: NvmlLibrary, source: NvmlSource, cgroup: Path
) -> None:
    now = [100.0]
    reader = NvmlLimits(library, source.worker, clock=lambda: now[0])
    for step, asked, expected in [
        (0, [on(cgroup)], 1),
        (INTERVAL - 1, [on(cgroup)], 1),
        (0, [on(cgroup), on(cgroup.parent)], 3),
        (INTERVAL, [on(cgroup), on(cgroup.parent)], 5),
    ]:
        now[0] += step
        await reader.limits(asked)
        assert driver.calls(GET) == expected


async def test_a_driver_that_hangs_is_a_problem_and_no_limit(
    driver: StubDriver, library: NvmlLibrary, source: NvmlSource, cgroup: Path
) -> None:
    reader = NvmlLimits(library, source.worker, deadline=0.2)
    driver.hang(GET)
    for _ in range(2):
        found = await reader.limits([on(cgroup)])
        assert (found.supported, found.problem and found.problem.reason) == (None, "DriverHung")
    await driver.called(GET)
    assert driver.calls(GET) == 1


async def test_a_driver_that_is_not_loaded_is_asked_again(driver: StubDriver, library: NvmlLibrary) -> None:
    reader = NvmlLimits(library, NvmlSource(library).worker)
    driver.fail("nvmlInitWithFlags", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    found = await reader.limits([])
    assert (found.supported, found.problem and found.problem.reason) == (None, "DriverNotLoaded")
    driver.recover()
    assert (await reader.limits([])).supported


async def test_what_nobody_expects_is_a_problem_and_no_end(source: NvmlSource) -> None:
    class Broken(NvmlLibrary):
        def limits(self, cgroups: object) -> MemoryLimits:
            raise AttributeError(cgroups)

    broken = Broken()
    broken.is_open = True
    found = await NvmlLimits(broken, source.worker).limits([])
    assert found.problem
    assert "AttributeError" in found.problem.message
