"""Runs the program that checks whether a card is well, with bounded time, output and memory."""

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

MAX_OUTPUT = 512
"""Bytes that are kept; the rest is dropped."""
MAX_DATA = 128 * 2**20
"""Bytes of memory of the program, so that it cannot have the plugin's container ended for want of memory."""
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
}
"""All variables of the program: it gets none of the plugin's."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    problem: str = ""
    """Why the card is not well, for people; empty where it is well."""
    unusable: str = ""
    """Why the program could not be run, which says nothing of the card."""


def ask_health(arguments: Sequence[str], timeout: float) -> HealthAnswer:
    """Runs ``arguments`` for at most ``timeout`` seconds. Blocks.

    1. The program ends with status 0: the card is well.
    2. It ends with another status, by a signal or by the timeout: the card is not well. The first line of the
       output says why.
    3. The program is not there, or cannot be executed: it is unusable.
    """
    try:
        return _answer(_started(arguments), timeout)
    except OSError as error:
        return HealthAnswer(unusable=f"{arguments[0]}: {error.strerror or error}")
    except Exception as error:  # it says nothing of the card
        return HealthAnswer(unusable=f"{arguments[0]}: {error!r}")


def _started(arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(ENVIRONMENT),
        cwd="/",
        start_new_session=True,
    )


def _answer(process: "subprocess.Popen[bytes]", timeout: float) -> HealthAnswer:
    deadline = time.monotonic() + timeout
    with process:
        try:
            _limit(process.pid)
            output = _read(process.stdout, deadline) if process.stdout else b""
            status = process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return HealthAnswer(f"its health command did not end within {timeout:g} s")
        finally:
            _kill(process)
    return HealthAnswer("" if status == 0 else _reason(output, status))


def _limit(pid: int) -> None:
    with suppress(OSError):  # it has ended already
        resource.prlimit(pid, resource.RLIMIT_DATA, (MAX_DATA, MAX_DATA))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _read(stream: IO[bytes], deadline: float) -> bytes:
    """Returns the beginning of what is written until the program ends. Raises ``TimeoutExpired`` where it, or
    a program that it has started, still has the output open."""
    kept = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                break
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                return kept
            kept = (kept + chunk)[:MAX_OUTPUT]
    raise subprocess.TimeoutExpired("", 0)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kills it with all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _reason(output: bytes, status: int) -> str:
    text = output.decode(errors="replace")
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    shown = "".join(letter if letter.isprintable() else " " for letter in line)[:256]
    ended = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
    return f"{shown} (its health command {ended})" if shown else f"its health command {ended}"
