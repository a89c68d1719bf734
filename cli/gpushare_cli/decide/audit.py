"""What an audit has found: where records differ, and which of them were compared."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from gpushare_cli.report import CommandReport, ExitStatus


class AuditDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Where two records differ; what is not about a card, a pod or a container leaves these empty."""

    rule: str
    """Which of the rules in docs/audit.md is broken."""
    kind: str
    node: str
    card: str
    """UUID."""
    pod: str
    """As ``namespace/name``."""
    uid: str
    """Of the pod."""
    container: str
    sentence: str
    """Who says what, what that means, and what to do."""


class AuditReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "AuditReport"
    nodes: int
    pods: int
    books: Sequence[str]
    """The names of the records that were compared."""
    unread: Sequence[str] = ()
    """The records that were not asked for, and how to have them read."""
    differences: Sequence[AuditDifference] = ()

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.NO if self.differences else ExitStatus.GOOD
