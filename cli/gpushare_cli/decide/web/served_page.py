"""Where the page is."""

from typing import ClassVar

from gpushare_cli.report import CommandReport


class ServedPage(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "ServedPage"
    url: str
    """With a secret token: whoever has it sees what you may see."""
