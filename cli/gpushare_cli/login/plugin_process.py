"""Runs a program that logs in, and ends it when it takes too long or nobody waits for it any more."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import NamedTuple

from gpushare_core.text.printable import printable

MAX_OUTPUT = 2**20
"""Bytes. An ExecCredential has some thousands."""
MAX_ERRORS = 600
"""Bytes of what it says of its failure; the end says most."""
READ_AT_ONCE = 64 * 1024
GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
NOTICE_SECONDS = 5.0
"""After which somebody at a terminal is told what is waited for."""


class TooMuchOutputError(Exception):
    """The program prints more than credentials can be."""


class PluginTerminal(NamedTuple):
    has_input: bool
    """Whether somebody can answer at the standard input."""
    is_attended: bool
    """Whether somebody reads what is printed on stderr."""

    @classmethod
    def of_process(cls) -> "PluginTerminal":
        return cls(has_input=sys.stdin is not None and sys.stdin.isatty(), is_attended=sys.stderr.isatty())


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
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=None if is_interactive else DEVNULL,
        stdout=PIPE,
        stderr=None if terminal.is_attended else PIPE,
        start_new_session=not is_interactive,
    )
    async with _ended_with_us(process, is_alone=not is_interactive), asyncio.timeout(seconds):
        with _notice(name, is_shown=terminal.is_attended):
            content, errors = await asyncio.gather(_content(process), _errors(process))
            status = await process.wait()
    return PluginOutput(status, content, errors)


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


@asynccontextmanager
async def _ended_with_us(process: Process, *, is_alone: bool) -> AsyncIterator[None]:
    try:
        yield
    except BaseException:
        await _end(process, is_alone=is_alone)
        raise


async def _end(process: Process, *, is_alone: bool) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            if is_alone:
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
                if not is_alone:
                    return


async def _content(process: Process) -> bytes:
    content, reader = bytearray(), process.stdout
    assert reader is not None
    while chunk := await reader.read(READ_AT_ONCE):
        content += chunk
        if len(content) > MAX_OUTPUT:
            raise TooMuchOutputError(f"more than {MAX_OUTPUT >> 10} KiB")
    return bytes(content)


async def _errors(process: Process) -> str | None:
    if process.stderr is None:
        return None
    end = b""
    while chunk := await process.stderr.read(READ_AT_ONCE):
        end = (end + chunk)[-MAX_ERRORS:]
    return printable(" ".join(end.decode(errors="replace").split()))
