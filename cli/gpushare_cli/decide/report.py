"""What an audit found, for people and for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import msgspec

from gpushare_core.audit.difference import Difference
from gpushare_core.residue import KUBELET_SECONDS, Residue
from gpushare_core.text.printable import printable

CELL_BYTES = 320
"""Of the table; a namespace and the name of a pod have 317 at most."""
LINE_BYTES = 16 * 1024
"""The value of a variable that a pod sets has up to a million; JSON has all of it."""


class ExitCode(IntEnum):
    """What the process says by its exit status."""

    NONE = 0
    """Nothing was found."""
    FOUND = 1
    CANNOT_LOOK = 2
    """Something that was asked for could not be read: nothing follows from finding nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What was compared, and where it differs."""

    nodes: int
    pods: int
    books: tuple[str, ...]
    """Names of those that were read."""
    unread: tuple[str, ...] = ()
    """Books that were not asked for, and how to have them read."""
    differences: Sequence[Difference] = field(default_factory=list)

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.FOUND if self.differences else ExitCode.NONE


def audit_text(report: AuditReport) -> str:
    """Returns lines for people: a table of the differences, the sentence of each, and what was compared."""
    lines = [*_table(report.differences), *_sentences(report.differences), _summary(report)]
    if report.unread:
        lines.append(f"Not compared: {'; '.join(report.unread)}.")
    return _page(lines)


def _table(differences: Sequence[Difference]) -> list[str]:
    if not differences:
        return []
    rows = [("RULE", "KIND", "NODE", "CARD", "POD")]
    rows += [
        (
            difference.rule,
            difference.kind,
            _cell(difference.node),
            _cell(difference.card),
            _cell(difference.pod),
        )
        for difference in differences
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _cell(text: str) -> str:
    return printable(text, max_bytes=CELL_BYTES) or "-"


def _sentences(differences: Sequence[Difference]) -> list[str]:
    return (
        ["", *(f"{difference.node}: {difference.sentence}" for difference in differences), ""]
        if differences
        else []
    )


def _summary(report: AuditReport) -> str:
    looked = f"{_count(report.nodes, 'node')}, {_count(report.pods, 'pod')}: {', '.join(report.books)}"
    found = _count(len(report.differences), "difference") if report.differences else "No difference"
    return f"{found}. Compared on {looked}."


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class _Found(msgspec.Struct):
    rule: str
    kind: str
    node: str
    card: str
    pod: str
    uid: str
    container: str
    sentence: str


class _Report(msgspec.Struct):
    nodes: int
    pods: int
    books: tuple[str, ...]
    differences: list[_Found]


def audit_json(report: AuditReport) -> str:
    """Returns the same for programs."""
    found = [
        _Found(
            rule=difference.rule,
            kind=difference.kind,
            node=difference.node,
            card=difference.card,
            pod=difference.pod,
            uid=difference.uid,
            container=difference.container,
            sentence=difference.sentence,
        )
        for difference in report.differences
    ]
    return _json(_Report(report.nodes, report.pods, report.books, found))


def residue_text(found: Sequence[Residue], looked: Sequence[str]) -> str:
    """Returns lines for people; ``looked``: at what."""
    lines = [f"{each.where}: {each.sentence}" for each in found]
    summary = f"{_count(len(found), 'thing')} left" if found else "Nothing is left"
    passing = sum(each.passes for each in found)
    goes = f", {passing} of which {_goes(passing)} within {KUBELET_SECONDS // 60} minutes" if passing else ""
    return _page([*lines, *([""] if lines else []), f"{summary}{goes}. Looked at {', '.join(looked)}."])


def _goes(number: int) -> str:
    return "goes by itself" if number == 1 else "go by themselves"


def _page(lines: Iterable[str]) -> str:
    """What is read of objects, files and calls ends no line, moves no cursor and fills no screen."""
    return "\n".join(printable(line, max_bytes=LINE_BYTES) for line in lines)


def residue_json(found: Sequence[Residue]) -> str:
    listed = [{"where": each.where, "sentence": each.sentence, "passes": each.passes} for each in found]
    return _json({"residue": listed})


def _json(value: object) -> str:
    """Nothing but printable ASCII; names of files may be bytes that are no text."""
    return json.dumps(msgspec.to_builtins(value), indent=2)
