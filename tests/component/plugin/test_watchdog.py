"""The process that ends a plugin that hangs, with real processes in place of the plugin."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpushare_plugin.heartbeat import WATCHDOG_SILENT_AFTER, Heartbeat, Watchdog
from gpushare_plugin.watchdog import SILENT_AFTER, TICK

PROGRAM = """
import asyncio, ctypes, os, signal, sys, threading, time
from gpushare_plugin import heartbeat, watchdog

watchdog.TICK, watchdog.MAX_TICK, watchdog.SILENT_AFTER, watchdog.START_SECONDS = 0.1, 0.2, 4.0, 60.0
heartbeat.PERIOD, heartbeat.WATCHDOG_SILENT_AFTER = 0.2, 3.0

async def works():
    return is_working

is_working = True

async def plugin(other):
    global is_working
    beats = heartbeat.Heartbeat(other, [works], asyncio.get_running_loop().time)
    task = asyncio.ensure_future(beats.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os._exit(0))
    await asyncio.sleep(0.5)
    print(os.getpid(), flush=True)
    {behaviour}
    while True:
        await asyncio.sleep(0.1)
        if beats.problem():
            print(beats.problem(), flush=True)

def run_plugin(*, beat, echoes):
    asyncio.run(plugin(heartbeat.Watchdog(beat, echoes)))

watchdog.run_plugin = run_plugin
watchdog.main()
"""

GOES_ON = "pass"
HANGS = [
    pytest.param("os.kill(os.getpid(), signal.SIGSTOP)", id="a stopped process"),
    pytest.param("time.sleep(1000)", id="a blocked event loop"),
    pytest.param(
        "threading.Thread(target=lambda: ctypes.PyDLL(None).sleep(1000), daemon=True).start()",
        id="a library call that never returns and keeps the interpreter",
    ),
    pytest.param("is_working = False", id="a service that does not answer"),
]


@contextmanager
def started(behaviour: str) -> Iterator["subprocess.Popen[str]"]:
    text = PROGRAM.replace("{behaviour}", behaviour)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", text], stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_there(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def await_end(is_over: Callable[[], bool], *, seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not is_over():
        assert time.monotonic() < ends, "it goes on"
        time.sleep(0.05)


@pytest.mark.parametrize("behaviour", HANGS)
def test_a_plugin_that_hangs_is_ended_and_said_so(behaviour: str) -> None:
    with started(behaviour) as process:
        plugin = int(first_line(process))
        assert plugin != process.pid
        assert process.wait(timeout=60) == 128 + signal.SIGKILL
        assert not is_there(plugin)
        assert process.stderr is not None
        line = json.loads(process.stderr.read().splitlines()[-1])
    assert line["level"] == "error"
    assert "hangs; it was killed" in line["message"]


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(GOES_ON, id="works"),
        pytest.param(
            "threading.Thread(target=lambda: ctypes.CDLL(None).sleep(1000), daemon=True).start()",
            id="has a library call that never returns, aside",
        ),
    ],
)
def test_a_plugin_that_answers_is_left_alone(behaviour: str) -> None:
    with started(behaviour) as process:
        plugin = int(first_line(process))
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=7)
        assert is_there(plugin)


def test_a_container_that_stood_still_goes_on() -> None:
    """As a virtual machine that was paused: both were silent for as long."""
    with started(GOES_ON) as process:
        plugin = int(first_line(process))
        for pid in (plugin, process.pid):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(5)
        for pid in (process.pid, plugin):
            os.kill(pid, signal.SIGCONT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        assert is_there(plugin)


def test_signals_reach_the_plugin_and_its_status_is_that_of_both() -> None:
    with started(GOES_ON) as process:
        first_line(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [("os._exit(3)", 3), ("os.kill(os.getpid(), signal.SIGSEGV)", 128 + signal.SIGSEGV)],
)
def test_the_status_is_that_of_the_plugin(behaviour: str, status: int) -> None:
    with started(behaviour) as process:
        assert process.wait(timeout=60) == status


def test_no_plugin_outlives_its_watchdog() -> None:
    with started(GOES_ON) as process:
        plugin = int(first_line(process))
        process.kill()
        await_end(lambda: not is_there(plugin))


def test_a_watchdog_that_hangs_is_noticed_by_the_plugin() -> None:
    """Its liveness probe fails then, and the kubelet starts the container anew."""
    with started(GOES_ON) as process:
        first_line(process)
        process.send_signal(signal.SIGSTOP)
        assert "the watchdog answered" in first_line(process)


async def test_no_sign_is_given_while_a_service_does_not_answer() -> None:
    beats: list[bool] = []

    class Recording(Watchdog):
        def beat(self) -> None:
            beats.append(True)

    async def answers() -> bool:
        return True

    async def hangs() -> bool:
        return False

    echoes, echo = os.pipe()
    recording = Recording(echo, echoes)
    await Heartbeat(recording, [answers, hangs], lambda: 0.0).beat()
    assert not beats
    await Heartbeat(recording, [answers, answers], lambda: 0.0).beat()
    assert beats
    os.close(echoes)
    os.close(echo)


async def test_a_plugin_without_a_watchdog_does_not_miss_it() -> None:
    now = 0.0
    heartbeat = Heartbeat(None, [], lambda: now)
    now = WATCHDOG_SILENT_AFTER + 1
    await heartbeat.beat()
    assert heartbeat.problem() == ""


def test_a_hang_is_over_within_fifteen_seconds() -> None:
    assert SILENT_AFTER + 2 * TICK < 15
