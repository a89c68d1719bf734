"""What is left of gpushare after the last policy."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from gpushare_cli.report import CommandReport, ExitStatus


class ResidueEntry(msgspec.Struct, frozen=True, kw_only=True):
    where: str
    """The object as ``Kind namespace/name``, or the host and the path."""
    sentence: str
    """What it is, and what to do."""
    passes: bool
    """Whether it goes by itself within some minutes of a deletion."""


class ResidueReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "ResidueReport"
    residue: Sequence[ResidueEntry]
    looked: Sequence[str]
    """What was looked at."""

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.NO if self.residue else ExitStatus.GOOD
