"""Runs the program that tells whether a card is well: with bounded time, output and memory."""

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
"""Bytes that are kept; the rest is read and thrown away."""
MAX_DATA = 128 * 2**20
"""Bytes of memory of the program: the plugin's container must not be ended for want of it."""
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
}
"""All that it gets: nothing of the plugin's own."""


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    problem: str = ""
    """Why the card is not well, for people; empty where it is."""
    unusable: str = ""
    """Why the program could not be run, which says nothing of the card."""


def ask_health(arguments: Sequence[str], timeout: float) -> HealthAnswer:
    """Runs ``arguments`` for at most ``timeout`` seconds. Blocks.

    Status 0 means that the card is well. Any other, a signal and a timeout mean that it is not; the first
    line of the output says why. A program that is not there, or cannot be executed, is unusable.
    """
    try:
        return _answer(_started(arguments), timeout)
    except OSError as error:
        return HealthAnswer(unusable=f"{arguments[0]}: {error.strerror or error}")
    except Exception as error:  # whatever it is, it says nothing of the card
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
    """Returns the begin of what is written until the program ends.

    Raises:
        subprocess.TimeoutExpired: it writes still, or something that it has started.
    """
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
    """Also what it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _reason(output: bytes, status: int) -> str:
    text = output.decode(errors="replace")
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    printable = "".join(each if each.isprintable() else " " for each in line)[:256]
    ended = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
    return f"{printable} (its health command {ended})" if printable else f"its health command {ended}"
