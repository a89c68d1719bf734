"""How the tests themselves are spread over processes."""

import time
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from tests import conftest
from tests.fuzz.fuzzing import EXAMPLES

UNIT, COMPONENT, LIFECYCLE = "tests/unit/a.py", "tests/component/b.py", "tests/e2e/test_lifecycle.py"
SCENARIO, BURST = "tests/e2e/test_scenario.py", "tests/e2e/test_burst.py"


@dataclass(eq=False)
class Process:
    """As xdist knows a process."""

    name: str
    asked: list[int] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> Any:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: list[int]) -> None:
        self.asked += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize(
    ("gibibytes", "processes"),
    [
        pytest.param(2, 3, id="a small machine has one cluster"),
        pytest.param(7, 3, id="seven"),
        pytest.param(11, 5, id="eleven"),
        pytest.param(22, 6, id="twenty-two"),
        pytest.param(200, 6, id="more clusters would end no earlier"),
    ],
)
def test_memory_says_how_many_clusters_there_are_beside_the_fast_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gibibytes: int, processes: int
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 1 kB\nMemAvailable:  {gibibytes << 20} kB\nBuffers: 2 kB\n")
    monkeypatch.setattr(conftest, "MEMORY", meminfo)
    config: Any = SimpleNamespace(option=SimpleNamespace(numprocesses="auto"))
    assert conftest.pytest_xdist_auto_num_workers(config) == processes


def started(tests: list[str], *processes: Process) -> conftest.ModuleScheduling:
    """A scheduling of ``tests`` whose processes have got their first modules."""
    config: Any = SimpleNamespace(
        getvalue=lambda _: ["popen"] * len(processes), option=SimpleNamespace(loadscopereorder=False)
    )
    scheduling = conftest.ModuleScheduling.__new__(conftest.ModuleScheduling)
    scheduling.config, scheduling.log = config, lambda *_: None
    scheduling.workqueue, scheduling.assigned_work = OrderedDict(), {}
    scheduling.registered_collections, scheduling.numnodes = {}, len(processes)
    scheduling.collection = None
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, tests)
    scheduling.schedule()
    return scheduling


def named(tests: list[str], process: Process) -> list[str]:
    return [tests[index].partition("::")[0] for index in process.asked]


def test_two_processes_begin_with_the_fast_tests_at_the_end() -> None:
    tests = [f"{module}::{name}" for module in (LIFECYCLE, SCENARIO, COMPONENT, UNIT) for name in "ab"]
    fast, second, other = Process("gw0"), Process("gw1"), Process("gw2")
    started(tests, fast, second, other)
    assert named(tests, fast) == [UNIT, UNIT]
    assert named(tests, second) == [COMPONENT, COMPONENT]
    assert named(tests, other) == [LIFECYCLE, LIFECYCLE]


def test_the_next_module_goes_to_who_is_free_first() -> None:
    tests = [f"{module}::{name}" for module in (LIFECYCLE, SCENARIO, BURST, UNIT) for name in "ab"]
    fast, one, two = Process("gw0"), Process("gw2"), Process("gw3")
    scheduling = started(tests, fast, one, two)
    assert named(tests, one) == [LIFECYCLE, LIFECYCLE]
    assert named(tests, two) == [SCENARIO, SCENARIO]
    scheduling.mark_test_complete(two, 2)
    assert named(tests, two) == [SCENARIO, SCENARIO, BURST, BURST]
    scheduling.mark_test_complete(one, 0)
    assert one.shutting_down, "nothing is left for it"


def test_everybody_draws_the_same_examples() -> None:
    """But in a long run, which looks for others."""
    assert settings.default is not None
    assert settings.default.derandomize == (not EXAMPLES)


def test_in_another_run_other_modules_are_fuzzed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "EXAMPLES", 1)
    paths = [Path(f"tests/fuzz/test_{number}.py") for number in range(9)]

    def order(run: str) -> list[Path]:
        items: Any = [SimpleNamespace(path=path) for path in paths]
        config: Any = SimpleNamespace(workerinput={"testrunuid": run})
        conftest.pytest_collection_modifyitems(config, items)
        return [item.path for item in items]

    assert order("one") == order("one")
    assert order("one") != order("two")
    assert sorted(order("two")) == paths


@pytest.mark.parametrize(("seconds", "begins"), [(3600.0, True), (5.0, False)])
def test_after_its_time_no_test_of_a_run_begins(
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    begins: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(conftest, "SECONDS", seconds)
    begun = time.monotonic() - 10.0
    item: Any = SimpleNamespace(config=SimpleNamespace(stash={conftest._BEGUN: begun}))
    with nullcontext() if begins else pytest.raises(pytest.skip.Exception, match="time of this run"):
        conftest.pytest_runtest_setup(item)
