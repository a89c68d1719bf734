"""Runs a program that logs in, and ends it when it takes too long or nobody waits for it any more."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import KW_ONLY, dataclass
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
    clear: Callable[[], None]
    """Takes away what else is shown there, before a plugin may ask something."""

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
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=None if is_interactive else DEVNULL,
        stdout=PIPE,
        stderr=None if terminal.is_attended else PIPE,
        start_new_session=not is_interactive,
    )
    running = _RunningPlugin(process, is_alone=not is_interactive)
    async with running.ended_with_us(), asyncio.timeout(seconds):
        with _notice(name, is_shown=terminal.is_attended):
            content, errors = await asyncio.gather(running.content(), running.errors())
            status = await process.wait()
    if len(content) > MAX_OUTPUT:
        raise TooMuchOutputError(f"more than {MAX_OUTPUT >> 10} KiB")
    return PluginOutput(status, content, errors)


@dataclass(frozen=True, slots=True)
class _RunningPlugin:
    process: Process
    _: KW_ONLY
    is_alone: bool
    """Whether it leads a session of its own."""

    @asynccontextmanager
    async def ended_with_us(self) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            await self._end()
            raise

    async def content(self) -> bytes:
        """Returns what it prints; of too much only more than ``MAX_OUTPUT`` bytes, and kills it."""
        content, reader = b"", self.process.stdout
        assert reader is not None
        while chunk := await reader.read(READ_AT_ONCE):
            if len(content) <= MAX_OUTPUT:
                content += chunk
            if len(content) > MAX_OUTPUT:
                self._signal(signal.SIGKILL)
        return content

    async def errors(self) -> str | None:
        if self.process.stderr is None:
            return None
        end = b""
        while chunk := await self.process.stderr.read(READ_AT_ONCE):
            end = (end + chunk)[-MAX_ERRORS:]
        return printable(" ".join(end.decode(errors="replace").split()))

    async def _end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self.process.communicate()  # until nobody has its pipes any more
        self.process._transport.close()  # type: ignore[attr-defined]  # what left the session may have them

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self.is_alone:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)


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
