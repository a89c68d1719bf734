"""The program that tells whether a card is well: whatever it does, it ends, and little of it is kept."""

import time
from pathlib import Path

import pytest

from gpushare_plugin.devices.inventory.health_command import MAX_OUTPUT, HealthAnswer, ask_health


def shell(script: str, *, timeout: float = 60.0) -> HealthAnswer:
    return ask_health(("/bin/sh", "-c", script), timeout)


def test_status_0_means_that_the_card_is_well_whatever_is_written() -> None:
    assert shell("echo fine") == HealthAnswer()


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        pytest.param("exit 3", "its health command ended with status 3", id="silent"),
        pytest.param(
            "echo; echo '  too hot '; echo more; exit 1",
            "too hot (its health command ended with status 1)",
            id="first line",
        ),
        pytest.param("echo bad >&2; exit 1", "bad (its health command ended with status 1)", id="stderr"),
        pytest.param(
            "printf 'a\\033[31m\\377'; exit 1", "a [31m\N{REPLACEMENT CHARACTER} (its", id="no text"
        ),
        pytest.param("kill -SEGV $$", "its health command was ended by signal 11", id="signal"),
    ],
)
def test_anything_else_means_that_it_is_not_and_says_why(script: str, problem: str) -> None:
    answer = shell(script)
    assert answer.problem.startswith(problem)
    assert answer.unusable == ""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exec sleep 60", id="sleeps"),
        pytest.param("trap '' TERM INT; while :; do :; done", id="ignores signals"),
        pytest.param("sleep 60 & exit 0", id="leaves something behind that holds its output"),
        pytest.param("exec yes", id="writes without end"),
    ],
)
def test_what_does_not_end_in_time_is_ended(script: str) -> None:
    begun = time.monotonic()
    assert shell(script, timeout=0.5).problem == "its health command did not end within 0.5 s"
    assert time.monotonic() - begun < 30


def test_a_long_output_is_cut() -> None:
    answer = shell("head -c 10000000 /dev/zero | tr '\\0' x; exit 1")
    assert answer.problem.startswith("x" * 256 + " (its health")
    assert len(answer.problem) < MAX_OUTPUT


def test_what_it_has_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert shell(f"sleep 60 >/dev/null 2>&1 & echo $! > {pid}") == HealthAnswer()
    left = int(pid.read_text())
    deadline = time.monotonic() + 60
    while Path(f"/proc/{left}/stat").exists() and " Z " not in Path(f"/proc/{left}/stat").read_text():
        assert time.monotonic() < deadline, "waited 60 s for the end of what it has started"
        time.sleep(0.01)


def test_it_is_told_nothing_of_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    answer = shell('test -z "$KUBERNETES_SERVICE_HOST" && test "$(pwd)" = / && ! read line')
    assert answer == HealthAnswer()


def test_it_cannot_take_all_memory() -> None:
    script = "x = bytearray(512 * 2**20)"
    time_for_the_limit = "import time; time.sleep(1); "
    answer = ask_health(("/usr/bin/env", "python3", "-c", time_for_the_limit + script), 30.0)
    assert "status 1" in answer.problem


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        pytest.param(None, 0, "No such file", id="not there"),
        pytest.param(b"#!/bin/sh\n", 0o644, "Permission denied", id="not executable"),
        pytest.param(b"\x7fELF rubbish", 0o755, "Exec format error", id="of another machine"),
    ],
)
def test_what_cannot_be_run_says_nothing_of_the_card(
    tmp_path: Path, content: bytes | None, mode: int, expected: str
) -> None:
    program = tmp_path / "healthy"
    if content is not None:
        program.write_bytes(content)
        program.chmod(mode)
    answer = ask_health((str(program), "GPU-0"), 60.0)
    assert answer.problem == ""
    assert answer.unusable.startswith(f"{program}: {expected}")


def test_no_file_stays_open() -> None:
    before = open_files()
    for _ in range(20):
        shell("exit 1")
    assert open_files() == before


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])
