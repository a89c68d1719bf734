"""Use as NVML tells it, through ``pynvml`` and a real shared library; processes in a folder like /proc."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest
from tests.fakes.nvml_driver import GIB, StubDriver
from tests.fakes.patience import PATIENCE
from tests.fakes.plugin_node import Node
from tests.samples.plugin import annotation, container, pod_json

from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.card import PhysicalCard
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.nvml.use import NvmlUse
from gpushare_plugin.devices.nvml.use_library import nvml_use
from gpushare_plugin.devices.use import Use, UseQuestion

ERRORS = {name: code for name, code in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
OF_A_CARD = ["nvmlDeviceGetHandleByUUID", "nvmlDeviceGetMemoryInfo_v2"]
LISTS = [
    f"nvmlDeviceGet{kind}RunningProcesses_{form}" for kind in ("Compute", "Graphics") for form in ("v3", "v2")
]
OLDER = {
    "NVML_ERROR_FUNCTION_NOT_FOUND",
    "NVML_ERROR_NOT_SUPPORTED",
    "NVML_ERROR_INVALID_ARGUMENT",
    "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
}
UID = "5c1f3b0e-8a4d-4f0e-9d2a-7b6c5d4e3f21"
X, Y = "a" * 64, "b" * 64
BOTH = ["GPU-a", "GPU-b"]


class StubLibrary(NvmlLibrary):
    """Looks processes up in ``proc``."""

    def __init__(self, driver: StubDriver) -> None:
        super().__init__(str(driver.library))
        self.proc = driver.folder / "proc"

    def use(self, question: UseQuestion) -> Use:
        uuids = [card.uuid for card in question.cards]
        return nvml_use(uuids, by_process=question.by_container, proc=self.proc)


@pytest.fixture
def driver(tmp_path: Path) -> StubDriver:
    """Of two cards."""
    driver = StubDriver(tmp_path)
    driver.add_card("GPU-a")
    driver.add_card("GPU-b", gib=32)
    driver.install()
    return driver


@pytest.fixture
def library(driver: StubDriver) -> Iterator[StubLibrary]:
    library = StubLibrary(driver)
    yield library
    driver.recover()
    library.close()


@pytest.fixture
async def source(library: NvmlLibrary) -> NvmlSource:
    source = NvmlSource(library)
    await source.read()
    return source


def belongs(driver: StubDriver, pid: int, cgroup: str) -> None:
    folder = driver.folder / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(f"0::{cgroup}\n")


def use_of(driver: StubDriver, *, by_process: bool = True) -> Use:
    return nvml_use(BOTH, by_process=by_process, proc=driver.folder / "proc")


def by_cgroup(use: Use) -> dict[tuple[str, str], int]:
    return {(process.card, process.cgroup): process.used for process in use.processes}


@pytest.mark.usefixtures("source")
def test_cards_and_processes_are_told_with_their_cgroups(driver: StubDriver) -> None:
    belongs(driver, 70, "/x")
    driver.run(70, GIB)
    driver.run(70, 2 * GIB, card=1)
    driver.run(71, 3 * GIB, card=1)
    use = use_of(driver)
    assert use.cards == {"GPU-a": GIB, "GPU-b": 5 * GIB}
    assert by_cgroup(use) == {
        ("GPU-a", "0::/x\n"): GIB,
        ("GPU-b", "0::/x\n"): 2 * GIB,
        ("GPU-b", ""): 3 * GIB,  # it is gone
    }


@pytest.mark.usefixtures("source")
def test_a_process_that_computes_and_draws_counts_once(driver: StubDriver) -> None:
    for kind in ("compute", "graphics"):
        driver.run(70, GIB, kind=kind)
    driver.run(71, 2 * GIB, kind="graphics")
    assert sorted(process.used for process in use_of(driver).processes) == [GIB, 2 * GIB]


@pytest.mark.usefixtures("source")
def test_processes_are_not_asked_for_where_only_cards_are_measured(driver: StubDriver) -> None:
    driver.run(70, GIB)
    use = use_of(driver, by_process=False)
    assert (use.cards["GPU-a"], list(use.processes)) == (GIB, [])
    assert [driver.calls(symbol) for symbol in LISTS] == [0, 0, 0, 0]


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("error", sorted(OLDER))
def test_older_drivers_are_asked_in_their_way(driver: StubDriver, error: str) -> None:
    driver.run(70, GIB)
    for symbol in ("nvmlDeviceGetMemoryInfo_v2", *(form for form in LISTS if form.endswith("v3"))):
        driver.fail(symbol, ERRORS[error])
    use = use_of(driver)
    assert (use.problem, use.cards["GPU-a"], [process.used for process in use.processes]) == (
        None,
        GIB,
        [GIB],
    )


@pytest.mark.usefixtures("source")
def test_a_card_that_draws_nothing_needs_no_list_of_that(driver: StubDriver) -> None:
    driver.run(70, GIB)
    for symbol in LISTS[2:]:
        driver.fail(symbol, pynvml.NVML_ERROR_NOT_SUPPORTED)
    assert [process.used for process in use_of(driver).processes] == [GIB]


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    ("error", "advice"),
    [
        pytest.param("NVML_ERROR_NOT_SUPPORTED", "set plugin.measurement.scope to Cards", id="not supported"),
        pytest.param("NVML_ERROR_NO_PERMISSION", "confine its pod", id="no permission"),
    ],
)
def test_where_processes_cannot_be_listed_cards_are_told_and_what_to_do(
    driver: StubDriver, error: str, advice: str
) -> None:
    driver.run(70, GIB)
    for symbol in LISTS:
        driver.fail(symbol, ERRORS[error], card=0)
    use = use_of(driver)
    assert use.cards == {"GPU-a": GIB, "GPU-b": 0}
    assert use.problem
    assert use.problem.reason == "ProcessesUnknown"
    assert advice in use.problem.message


@pytest.mark.usefixtures("source")
def test_a_process_whose_use_is_not_available_is_no_process_without_use(driver: StubDriver) -> None:
    driver.run(70, -1)
    use = use_of(driver)
    assert use.problem
    assert "without what each of them uses" in use.problem.message


@pytest.mark.usefixtures("source")
def test_where_processes_may_not_be_looked_at_that_is_said(
    driver: StubDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, **_: object) -> str:
        raise PermissionError(13, "Permission denied", str(self))

    driver.run(70, GIB)
    monkeypatch.setattr(Path, "read_text", refused)
    use = use_of(driver)
    assert use.problem
    assert "SELinux" in use.problem.message
    assert use.cards["GPU-a"] == GIB


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize("error", sorted(ERRORS))
@pytest.mark.parametrize("symbol", [*OF_A_CARD, LISTS[0]])
def test_every_error_of_a_card_leaves_out_that_card_alone(
    driver: StubDriver, symbol: str, error: str
) -> None:
    code = ERRORS[error]
    driver.used = {0: GIB, 1: 2 * GIB}
    driver.fail(symbol, code, card=0)
    use = use_of(driver)
    if code in NEVER_ONE_CARD:
        assert use.problem
        assert use.cards == {}
    else:
        assert use.cards["GPU-b"] == 2 * GIB
        asked_otherwise = error in OLDER and symbol != OF_A_CARD[0]
        may_be_told = asked_otherwise or error == "NVML_ERROR_NO_PERMISSION"
        assert ("GPU-a" in use.cards) <= may_be_told or code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE


def question(*, interval: float = 0.0, cards: tuple[str, ...] = ("GPU-a",)) -> UseQuestion:
    known = [PhysicalCard(uuid=uuid, index=0, memory=16 * GIB) for uuid in cards]
    return UseQuestion(cards=known, by_container=True, interval=interval)


async def test_the_driver_is_asked_once_in_an_interval(
    driver: StubDriver, library: StubLibrary, source: NvmlSource
) -> None:
    now = [100.0]
    meter = NvmlUse(library, source.worker, clock=lambda: now[0])
    for step, expected in [(0, 1), (29, 1), (1, 2)]:
        now[0] += step
        await meter.measure(question(interval=30))
        assert driver.calls("nvmlDeviceGetMemoryInfo_v2") == expected
    await meter.measure(question(interval=30, cards=("GPU-a", "GPU-b")))
    assert driver.calls("nvmlDeviceGetMemoryInfo_v2") == 4


async def test_a_driver_that_hangs_is_asked_once_and_answers_later(
    driver: StubDriver, library: StubLibrary, source: NvmlSource
) -> None:
    meter = NvmlUse(library, source.worker, deadline=0.2)
    driver.used = {0: GIB}
    driver.hang("nvmlDeviceGetMemoryInfo_v2")
    for _ in range(3):
        use = await meter.measure(question())
        assert use.problem
        assert use.problem.reason == "DriverHung"
    await driver.called("nvmlDeviceGetMemoryInfo_v2")
    assert driver.calls("nvmlDeviceGetMemoryInfo_v2") == 1
    driver.recover()
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while (use := await meter.measure(question())).problem:
        assert asyncio.get_running_loop().time() < deadline, use.problem
        await asyncio.sleep(0.01)
    assert use.cards == {"GPU-a": GIB}


async def test_a_driver_that_is_not_loaded_is_not_asked(driver: StubDriver, library: StubLibrary) -> None:
    driver.fail("nvmlInitWithFlags", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    source = NvmlSource(library)
    await source.read()
    use = await NvmlUse(library, source.worker).measure(question())
    assert use.problem
    assert use.problem.reason == "DriverNotAsked"


async def test_what_nobody_expects_is_a_problem_and_no_end(source: NvmlSource) -> None:
    class Broken(NvmlLibrary):
        def use(self, question: UseQuestion) -> Use:
            raise AttributeError(question)

    broken = Broken()
    broken.is_open = True
    use = await NvmlUse(broken, source.worker).measure(question())
    assert use.problem
    assert "AttributeError" in use.problem.message


def of_two_containers() -> Json:
    text = annotation({"x": {"GPU-a": 4}, "y": {"GPU-a": 4}})
    body = pod_json("two", container("x", 4), container("y", 4), annotation=text, uid=UID)
    names = {"x": X, "y": Y}
    body["status"]["containerStatuses"] = [
        {"name": name, "containerID": f"containerd://{identifier}"} for name, identifier in names.items()
    ]
    return body


async def test_processes_are_joined_to_the_containers_of_a_pod_that_is_read_once(
    driver: StubDriver, library: StubLibrary, idle_node: Node
) -> None:
    node, source = idle_node, NvmlSource(library)
    meter = NvmlUse(library, source.worker)
    node.open_source, node.open_use = lambda _: source, lambda _: meter
    node.share(devices={"source": "NVML"})
    for pid, identifier, size in [(70, X, GIB), (71, X, GIB), (72, Y, 5 * GIB)]:
        belongs(driver, pid, f"/../../kubepods-pod{UID.replace('-', '_')}.slice/crio-{identifier}.scope")
        driver.run(pid, size)
    belongs(driver, 73, "/system.slice/others.service")
    driver.run(73, 2 * GIB)
    await node.start_plugin()
    await node.until_registered()
    await node.run_pod(of_two_containers())

    def holders() -> set[str]:
        return {pod.container for card in node.share_node.status.cards for pod in card.pods}

    # A measurement between the admissions of the two containers would read the pod again after the second.
    await node.until("both containers hold units", lambda: holders() == {"x", "y"})
    seen_before = len(node.api.seen)
    node.share(devices={"source": "NVML"}, measurement={"scope": "Containers", "intervalSeconds": 10})

    def used() -> dict[str, str]:
        return {pod.container: pod.used_memory for card in node.share_node.status.cards for pod in card.pods}

    await node.until("both containers", lambda: used() == {"x": "2Gi", "y": "5Gi"})
    assert node.share_node.status.cards[0].used_memory == "9Gi"
    assert node.condition("MemoryExceeded") == ("True", "RequestExceeded")
    assert "container y of pod default/two uses 5Gi" in node.message("MemoryExceeded")
    reads = [
        request
        for request in node.api.seen[seen_before:]
        if request.method == "GET" and request.path.endswith("/pods/two")
    ]
    assert len(reads) == 1


def test_the_tests_own_process_has_a_cgroup() -> None:
    from gpushare_plugin.devices.nvml.use_library import PROC, _cgroup

    assert ":" in _cgroup(os.getpid(), PROC)
