"""What people and programs are told of an audit."""

import json

from gpushare_cli.decide.report import AuditReport, AuditStatus, audit_json, audit_text, residue_text
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.residue import Residue

DIFFERENCE = Difference(
    node="gpu-1",
    kind=DifferenceKind.UNCOUNTED,
    card="GPU-0",
    pod="default/a",
    sentence="units look free: see the log",
)
REPORT = AuditReport(nodes=1, pods=2, books=("annotations",), differences=[DIFFERENCE])


def test_a_table_then_sentences_then_what_was_compared() -> None:
    assert audit_text(REPORT).splitlines() == [
        "RULE   KIND        NODE    CARD    POD",
        "I4     Uncounted   gpu-1   GPU-0   default/a",
        "",
        "gpu-1: units look free: see the log",
        "",
        "1 difference. Compared on 1 node, 2 pods: annotations.",
    ]


def test_nothing_found() -> None:
    report = AuditReport(nodes=3, pods=1, books=("annotations", "x"), unread=("y (how)",))
    assert report.exit_code is AuditStatus.NONE
    assert audit_text(report).splitlines() == [
        "No difference. Compared on 3 nodes, 1 pod: annotations, x.",
        "Not compared: y (how).",
    ]


def test_for_programs() -> None:
    assert json.loads(audit_json(REPORT)) == {
        "nodes": 1,
        "pods": 2,
        "books": ["annotations"],
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
    assert residue_text([Residue("Node n", "take it away")], ["objects"]).splitlines() == [
        "Node n: take it away",
        "",
        "1 thing left. Looked at objects.",
    ]
    assert residue_text([], ["objects"]) == "Nothing is left. Looked at objects."
