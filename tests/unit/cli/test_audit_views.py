"""What people and programs are told of an audit."""

import io
import json

from rich.console import Console, RenderableType

from gpushare_cli.decide.audit import AuditReport
from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.gather.differences import audit_difference
from gpushare_cli.gather.residue import residue_entry
from gpushare_cli.output.format import Format, document_text
from gpushare_cli.output.page import OutputPage
from gpushare_cli.report import ExitStatus
from gpushare_cli.views.audit import audit_view, residue_view
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.residue import Residue

DIFFERENCE = Difference(
    node="gpu-1",
    kind=DifferenceKind.UNCOUNTED,
    card="GPU-0",
    pod="default/a",
    sentence="units look free: see the log",
)
REPORT = AuditReport(nodes=1, pods=2, books=["annotations"], differences=[audit_difference(DIFFERENCE)])
PAGE = OutputPage(width=160)


def lines(*parts: RenderableType) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=PAGE.width, markup=False)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_table_then_sentences_then_what_was_compared() -> None:
    assert lines(*audit_view(REPORT, PAGE)) == [
        "RULE   KIND        NODE    CARD    POD",
        "I4     Uncounted   gpu-1   GPU-0   default/a",
        "",
        "gpu-1: units look free: see the log",
        "",
        "1 difference. Compared on 1 node, 2 pods: annotations.",
    ]


def test_nothing_found() -> None:
    report = AuditReport(nodes=3, pods=1, books=["annotations", "x"], unread=["y (how)"])
    assert report.exit_status is ExitStatus.GOOD
    assert lines(*audit_view(report, PAGE)) == [
        "No difference. Compared on 3 nodes, 1 pod: annotations, x.",
        "Not compared: y (how).",
    ]


def test_for_programs() -> None:
    assert json.loads(document_text(REPORT, Format.JSON)) == {
        "apiVersion": "cli.gpushare.io/v1alpha1",
        "kind": "AuditReport",
        "nodes": 1,
        "pods": 2,
        "books": ["annotations"],
        "unread": [],
        "differences": [
            {
                "rule": "I4",
                "kind": "Uncounted",
                "node": "gpu-1",
                "card": "GPU-0",
                "pod": "default/a",
                "uid": "",
                "container": "",
                "sentence": "units look free: see the log",
            }
        ],
    }


def test_what_is_left_for_people() -> None:
    left = ResidueReport(residue=[residue_entry(Residue("Node n", "take it away"))], looked=["objects"])
    assert lines(*residue_view(left, PAGE)) == [
        "Node n: take it away",
        "",
        "1 thing left. Looked at objects.",
    ]
    nothing = ResidueReport(residue=[], looked=["objects"])
    assert lines(*residue_view(nothing, PAGE)) == ["Nothing is left. Looked at objects."]
