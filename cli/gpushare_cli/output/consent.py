"""What a person at the terminal says to a change, before it is made."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TextIO

from rich.console import RenderableType

from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.format import Format
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.terminal import ColorChoice, console_of


def _is_terminal(file: TextIO | None) -> bool:
    """Python has None for what was closed when the program began."""
    return file is not None and not file.closed and file.isatty()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Asks on stderr: stdout is for the report."""

    color: ColorChoice
    environment: Mapping[str, str]
    is_agreed: bool
    """``--yes``: what is to be done is shown, and nobody is asked."""
    page: OutputPage
    answers: TextIO = field(default_factory=lambda: sys.stdin)
    shown_at: TextIO = field(default_factory=lambda: sys.stderr)

    @classmethod
    def of(cls, options: Namespace) -> "Consent":
        page = OutputPage(width=80, is_wide=options.output is Format.WIDE, is_ascii=options.ascii)
        return cls(color=options.color, environment=os.environ, is_agreed=options.yes, page=page)

    def require_somebody(self) -> None:
        """Raises ``CannotLookError`` where nobody can answer."""
        if not self.is_agreed and not (_is_terminal(self.answers) and _is_terminal(self.shown_at)):
            raise CannotLookError(
                "nobody is at a terminal here who could be asked: --yes does it without asking, --dry-run"
                " shows what it would do"
            )

    async def agrees(self, view: Callable[[OutputPage], Iterable[RenderableType]]) -> bool:
        """Shows what is to be done, and returns whether it may be."""
        console = console_of(self.shown_at, color=self.color, environment=self.environment)
        for part in view(replace(self.page, width=console.width)):
            console.print(part)
        if self.is_agreed:
            return True
        self.shown_at.write("\nDo this? [y/N] ")
        self.shown_at.flush()
        return (await self._line()).strip().lower() in {"y", "yes"}

    async def _line(self) -> str:
        """Waits in the loop, where Ctrl-C ends it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            if not answer.done():
                answer.set_result(self.answers.readline())

        loop.add_reader(self.answers, read)
        try:
            return await answer
        finally:
            loop.remove_reader(self.answers)
