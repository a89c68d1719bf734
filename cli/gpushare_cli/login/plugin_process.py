"""Runs a program that logs in, and ends it when it takes too long or nobody waits for it any more."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
from typing import IO, NamedTuple

from gpushare_core.text.printable import printable

MAX_OUTPUT = 2**20
"""Bytes. An ExecCredential has some thousands."""
MAX_ERRORS = 600
"""Bytes of what it says of its failure; the end says most."""
READ_AT_ONCE = 2**20
"""Bytes: no pipe holds more by itself."""
POLL_SECONDS = 0.01
GRACE_SECONDS = 2.0
NOTICE_SECONDS = 5.0
"""After which somebody at a terminal is told what is waited for."""


class TooMuchOutputError(Exception):
    """The program prints more than credentials can be."""


class PluginTerminal(NamedTuple):
    has_input: bool
    """Whether somebody can answer at the standard input."""
    is_attended: bool
    """Whether somebody reads what is printed on stderr."""
    clear: Callable[[], None]
    """Takes away what else is shown there, before a plugin may ask something."""
    grace: float = GRACE_SECONDS
    """Seconds between SIGTERM and SIGKILL."""

    @classmethod
    def of_process(cls, clear: Callable[[], None]) -> "PluginTerminal":
        has_input = sys.stdin is not None and sys.stdin.isatty()
        return cls(has_input=has_input, is_attended=sys.stderr.isatty(), clear=clear)


NOBODY = PluginTerminal(has_input=False, is_attended=False, clear=lambda: None)


class PluginOutput(NamedTuple):
    status: int
    """Negative: the signal that ended it."""
    content: bytes
    errors: str | None
    """The end of what it printed on stderr, in one line; None where it was seen at once."""


async def run_plugin(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    name: str,
    terminal: PluginTerminal,
    is_interactive: bool,
    seconds: float,
) -> PluginOutput:
    """Returns what the program printed, once it has ended.

    One that may ask has the terminal, in our process group: a terminal lets no other read. Any other one is
    in a session of its own, and is ended with all that it has started.

    Raises:
        OSError, ValueError: it cannot be started.
        TimeoutError: it did not end within ``seconds``, and was ended.
        TooMuchOutputError: it was ended because it prints too much.
    """
    terminal.clear()
    process = _started(command, environment, terminal, is_interactive=is_interactive)
    running = _RunningPlugin(process, is_alone=not is_interactive, grace=terminal.grace)
    with process, _notice(name, is_shown=terminal.is_attended):
        try:
            async with asyncio.timeout(seconds):
                return await running.output()
        except BaseException:
            await running.end()
            raise


def _started(
    command: Sequence[str],
    environment: Mapping[str, str],
    terminal: PluginTerminal,
    *,
    is_interactive: bool,
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        env=environment,
        stdin=None if is_interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if terminal.is_attended else subprocess.PIPE,
        start_new_session=not is_interactive,
    )


@dataclass(frozen=True, slots=True)
class _RunningPlugin:
    """asyncio has subprocesses as well. Cancelled while it starts one, it waits for ever (CPython 3.11)."""

    process: "subprocess.Popen[bytes]"
    _: KW_ONLY
    is_alone: bool
    """Whether it leads a session of its own."""
    grace: float

    async def output(self) -> PluginOutput:
        """Returns once it has ended; what it has started may go on. Raises ``TooMuchOutputError``."""
        content, errors = b"", b""
        while True:
            has_ended = self.process.poll() is not None
            content += _available(self.process.stdout)
            errors = (errors + _available(self.process.stderr))[-MAX_ERRORS:]
            if len(content) > MAX_OUTPUT:
                raise TooMuchOutputError(f"more than {MAX_OUTPUT >> 10} KiB")
            if has_ended:
                return PluginOutput(
                    self.process.returncode, content, None if self.process.stderr is None else _line(errors)
                )
            await asyncio.sleep(POLL_SECONDS)

    async def end(self) -> None:
        """Also where somebody who waits for this presses Ctrl-C once more: it never outlives us."""
        try:
            self._signal(signal.SIGTERM)
            for _ in range(int(self.grace / POLL_SECONDS)):
                if self.process.poll() is not None:
                    break
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self.is_alone:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)


def _available(pipe: IO[bytes] | None) -> bytes:
    """Returns what is in a pipe now."""
    if pipe is None:
        return b""
    os.set_blocking(pipe.fileno(), False)
    with suppress(BlockingIOError):
        return os.read(pipe.fileno(), READ_AT_ONCE)
    return b""


def _line(errors: bytes) -> str:
    return printable(" ".join(errors.decode(errors="replace").split()))


@contextmanager
def _notice(name: str, *, is_shown: bool) -> Iterator[None]:
    """Tells somebody at a terminal what is waited for."""

    def show() -> None:
        if is_shown:
            sys.stderr.write(
                f"kubectl gpushare: {name} is to log in, and has not ended yet (Ctrl-C stops it)\n"
            )

    notice = asyncio.get_running_loop().call_later(NOTICE_SECONDS, show)
    try:
        yield
    finally:
        notice.cancel()
