"""Rows without a cluster: our programs between the benchmark's own stand-ins, at a size of seconds."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bench.measuring.size import QUICK
from bench.peers.programs import ProgramEndedError, message_of, program, script, seconds_to_end, while_running
from bench.rows.programs import extender_books, plugin, program_starts
from bench.rows.programs.workplace import Workplace

TINY = replace(
    QUICK, book_nodes=20, book_pods=2, calls=5, admissions=3, fine_admissions=2, idle_seconds=0.2, starts=1
)


@pytest.fixture
def workplace() -> Iterator[Workplace]:
    """In a folder with a short name: addresses of Unix sockets have 108 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Workplace(Path(folder), TINY)


async def test_an_extender_gives_right_answers_from_its_books(workplace: Workplace) -> None:
    figures = await extender_books.filters(workplace)
    assert [figure.what for figure in figures] == [
        "filter, 20 of 20 names: p50",
        "filter, 20 of 20 names: p99",
        "filter, all 20 names: p50",
        "filter, all 20 names: p99",
    ]
    memory = {measured.what: measured for measured in await extender_books.memory(workplace)}
    # Two of the nodes are full, with a pod on each of their 8 cards.
    assert memory["extender, 20 nodes and 52 pods"].measured > 10
    assert memory["start to first right answer, 20 nodes and 52 pods"].measured > 0
    assert len([*workplace.folder.glob("extender-*/kubeconfig")]) == 1, "one for both rows"


async def test_a_plugin_admits_pods_and_is_measured_once_for_two_rows(workplace: Workplace) -> None:
    admissions = await plugin.admissions(workplace)
    assert [admission.measured > 0 for admission in admissions] == [True] * 6
    folders = list(workplace.folder.glob("plugin-*"))
    footprint = {figure.what: figure for figure in await plugin.footprint(workplace)}
    assert footprint["plugin, 256,000 units"].measured > 10
    assert 0 <= footprint["plugin when idle, 3 pods"].measured < 100
    assert len(folders) == 2, "one node of many units, one of few"


@pytest.mark.parametrize(
    "measure", [pytest.param(measure, id=title) for title, measure in program_starts.ROWS]
)
async def test_every_program_starts(workplace: Workplace, measure: program_starts.Measure) -> None:
    (figure,) = await measure(workplace)
    assert figure.measured > 0


async def test_a_program_that_ends_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = ("--node", "a", "--kubeconfig", tmp_path / "missing")
    async with program(script("gpushare-plugin"), *options, log=log) as process:
        with pytest.raises(ProgramEndedError, match="it ended with 1: cannot reach the API server"):
            await while_running(process, _for_ever(), log)


async def test_a_program_is_not_waited_for_of_which_only_the_start_counts(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo ready; while true; do sleep 0.1; done"
    log = tmp_path / "log"
    async with program("bash", "-c", stubborn, log=log, announces=True, killed=True) as process:
        assert process.stdout is not None
        await process.stdout.readline()
    assert process.returncode == -signal.SIGKILL


async def _for_ever() -> None:

    await asyncio.Event().wait()


async def test_a_program_that_fails_has_no_start() -> None:
    with pytest.raises(ProgramEndedError, match="gpushare-hostctl ended with 2"):
        await seconds_to_end("gpushare-hostctl", "--nonsense")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param('{"level": "error", "message": "no port"}', "no port", id="ours"),
        pytest.param("Traceback", "Traceback", id="any other"),
        pytest.param('["a"]', '["a"]', id="JSON that is no log"),
    ],
)
def test_what_a_line_of_a_log_says(line: str, message: str) -> None:
    assert message_of(line) == message
