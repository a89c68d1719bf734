"""What a person at the terminal says to a change, before it is made."""

import asyncio
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import RenderableType

from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.terminal import ColorChoice, console_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Asks on stderr: stdout is for the report."""

    color: ColorChoice
    environment: Mapping[str, str]
    is_agreed: bool
    """``--yes``: what is to be done is shown, and nobody is asked."""
    answers: TextIO = field(default_factory=lambda: sys.stdin)
    shown_at: TextIO = field(default_factory=lambda: sys.stderr)

    def require_somebody(self) -> None:
        """Raises ``CannotLookError`` where nobody can answer."""
        if not self.is_agreed and not (self.answers.isatty() and self.shown_at.isatty()):
            raise CannotLookError(
                "nobody is at a terminal here who could be asked: --yes does it without asking, --dry-run"
                " shows what it would do"
            )

    async def agrees(self, shown: Iterable[RenderableType], question: str) -> bool:
        """Shows what is to be done, and returns whether it may be."""
        console = console_of(self.shown_at, color=self.color, environment=self.environment)
        for part in shown:
            console.print(part)
        if self.is_agreed:
            return True
        self.shown_at.write(f"\n{question} [y/N] ")
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
