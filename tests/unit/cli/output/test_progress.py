"""A line on a terminal says what takes long, and goes away."""

import asyncio
import io

import pytest

from gpushare_cli.output import progress
from gpushare_cli.output.progress import StatusLine


class Terminal(io.StringIO):
    """Says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self._written = asyncio.Event()

    def flush(self) -> None:
        self._written.set()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(60):
            while text not in self.getvalue():
                self._written.clear()
                await self._written.wait()


async def test_what_takes_long_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)
    file = Terminal()
    line = StatusLine(file, width=80)
    line.doing("reading nodes")
    await file.until("reading nodes ...")
    line.doing("reading \x1bpods")
    await file.until("reading \\u001bpods ...")
    line.done()
    assert file.getvalue().endswith("\r\x1b[K")


async def test_what_is_quick_says_nothing() -> None:
    file = Terminal()
    line = StatusLine(file, width=80)
    line.doing("reading nodes")
    line.done()
    line.done()
    assert file.getvalue() == ""
