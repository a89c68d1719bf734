"""The tables of a run, and what is compared at its end."""

import json
from pathlib import Path

from chaos.findings import Finding, Findings
from chaos.operations.pod_shapes import Ask, PodShape
from chaos.operations.pods import CreatePod, DeletePod
from chaos.plan.history import Step
from chaos.record import DONE, Record, Recovery
from chaos.report import markdown, recovery_rows, write_json
from chaos.run import Outcome
from chaos.teardown import differing_files

RECOVERIES = [
    Recovery((), 1.0, 0.1),
    Recovery(("kubelet.kill",), 2.0, 0.2),
    Recovery(("kubelet.kill",), 4.0, 0.4),
    Recovery(("kubelet.kill",), 9.0, 0.3),
    Recovery(("kubelet.kill", "api.slow"), 5.0, 0.5),
]


def outcome() -> Outcome:
    record = Record(recoveries=RECOVERIES)
    shape = PodShape(asks=(Ask(),))
    record.note(
        Step(number=1, round=0, after=0, operation=CreatePod(name="a", shape=shape)), DONE, seconds=0.1
    )
    refused = 'ApiError: 404 NotFound: pods "a" not found'
    record.note(Step(number=2, round=0, after=0, operation=DeletePod(name="a")), refused, seconds=0.1)
    seen = Outcome(Findings(lambda _: None, collect=True), record=record, seconds=4.0, longest_wait=2.5)
    seen.memory = {"plugin on gpu-1": [50.0, 70.0, 60.0]}
    seen.findings.add(Finding(rule="I3", sentence="a | b"))
    return seen


def test_recovery_is_told_by_kind_where_one_fault_was_alone() -> None:
    assert recovery_rows(RECOVERIES) == [
        ("kubelet.kill", 3, "4.0", "9.0", "0.3", "0.4"),
        ("none", 1, "1.0", "1.0", "0.1", "0.1"),
        ("several at once", 1, "5.0", "5.0", "0.5", "0.5"),
    ]


def test_the_tables_have_everything() -> None:
    text = markdown(outcome(), seed="7")
    for line in ("operations a second", "pod.create", "kubelet.kill", "plugin on gpu-1", "a / b", "| 0.5 "):
        assert line in text


def test_names_of_pods_make_no_answers_of_their_own() -> None:
    assert outcome().record.outcomes["pod.delete"] == {"ApiError: 404 NotFound: pods ": 1}


def test_programs_read_the_same(tmp_path: Path) -> None:
    write_json(tmp_path / "report.json", outcome(), seed="7")
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["summary"]["operations, faults included"] == 2
    assert content["recoveries"][1] == {"faults": ["kubelet.kill"], "quiet": 2.0, "agreement": 0.2}
    assert content["differences"] == [{"rule": "I3", "sentence": "a | b"}]


def test_a_difference_is_told_once() -> None:
    told: list[str] = []
    findings = Findings(told.append)
    for _ in range(2):
        findings.add(Finding(rule="I1", sentence="a"))
    assert told == ["DIFFERENCE I1: a"]
    assert findings.are_enough


def test_every_file_that_is_not_as_before_is_named() -> None:
    before = {"cp": {"same": b"1", "edited": b"1", "gone": b"1"}}
    after = {"cp": {"same": b"1", "edited": b"2", "new": b""}}
    assert [differing_file.rpartition("/")[2] for differing_file in differing_files(before, after)] == [
        "edited is not what it was",
        "gone is gone",
        "new is left",
    ]
