"""The reports of an audit, as text and as JSON."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from gpushare_core.audit.difference import Difference
from gpushare_core.residue import KUBELET_SECONDS, Residue
from gpushare_core.text.printable import printable

CELL_BYTES = 320
"""In the table; a namespace and the name of a pod have 317 at most."""
LINE_BYTES = 16 * 1024
"""The value of a variable that a pod sets has up to a million; JSON shows it in full."""


class AuditStatus(IntEnum):
    """The exit status."""

    NONE = 0
    """Nothing was found."""
    FOUND = 1
    CANNOT_LOOK = 2
    """Something that was asked for could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What was compared, and where it differs."""

    nodes: int
    pods: int
    books: tuple[str, ...]
    """The names of the books that were read."""
    unread: tuple[str, ...] = ()
    """The books that were not asked for, and how to have them read."""
    differences: Sequence[Difference] = field(default_factory=list)

    @property
    def exit_code(self) -> AuditStatus:
        return AuditStatus.FOUND if self.differences else AuditStatus.NONE


def audit_text(report: AuditReport) -> str:
    """Returns a table of the differences, the sentence of each, and what was compared."""
    sentences = [f"{difference.node}: {difference.sentence}" for difference in report.differences]
    lines = [*_table(report.differences), *(["", *sentences, ""] if sentences else []), _summary(report)]
    if report.unread:
        lines.append(f"Not compared: {'; '.join(report.unread)}.")
    return _page(lines)


def _table(differences: Sequence[Difference]) -> list[str]:
    if not differences:
        return []
    names = ("rule", "kind", "node", "card", "pod")
    rows = [tuple(map(str.upper, names))]
    for difference in differences:
        cells = (printable(getattr(difference, name), max_bytes=CELL_BYTES) for name in names)
        rows.append(tuple(cell or "-" for cell in cells))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _summary(report: AuditReport) -> str:
    looked = f"{_count(report.nodes, 'node')}, {_count(report.pods, 'pod')}: {', '.join(report.books)}"
    found = _count(len(report.differences), "difference") if report.differences else "No difference"
    return f"{found}. Compared on {looked}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def audit_json(report: AuditReport) -> str:
    names = ("rule", "kind", "node", "card", "pod", "uid", "container", "sentence")
    found = [{name: getattr(difference, name) for name in names} for difference in report.differences]
    return _json({"nodes": report.nodes, "pods": report.pods, "books": report.books, "differences": found})


def residue_text(found: Sequence[Residue], looked: Sequence[str]) -> str:
    """``looked``: the names of what was looked at."""
    lines = [f"{left.where}: {left.sentence}" for left in found]
    summary = f"{_count(len(found), 'thing')} left" if found else "Nothing is left"
    passing = sum(left.passes for left in found)
    verb = "goes by itself" if passing == 1 else "go by themselves"
    goes = f", {passing} of which {verb} within {KUBELET_SECONDS // 60} minutes" if passing else ""
    return _page([*lines, *([""] if lines else []), f"{summary}{goes}. Looked at {', '.join(looked)}."])


def _page(lines: Iterable[str]) -> str:
    """Texts from objects and files must not end a line, move the cursor or fill the screen."""
    return "\n".join(printable(line, max_bytes=LINE_BYTES) for line in lines)


def residue_json(found: Sequence[Residue]) -> str:
    listed = [{"where": left.where, "sentence": left.sentence, "passes": left.passes} for left in found]
    return _json({"residue": listed})


def _json(value: object) -> str:
    """Writes printable ASCII alone, as names of files may be bytes that are no text."""
    return json.dumps(value, indent=2)
