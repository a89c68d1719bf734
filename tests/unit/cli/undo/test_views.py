"""What people see of ``undo``."""

import io

import msgspec
import pytest
from rich.console import Console

from gpushare_cli.decide.residue import ResidueEntry
from gpushare_cli.decide.undo.report import (
    HeldPod,
    UndoOutcome,
    UndoPlan,
    UndoReport,
    UndoStep,
    UndoWarning,
)
from gpushare_cli.output.page import OutputPage
from gpushare_cli.report import ExitStatus
from gpushare_cli.views.undo import undo_view

PLAN = UndoPlan(
    policies=["default"],
    staying=[],
    needed_backend=None,
    shared_goes=True,
    nodes=["gpu-1"],
    steps=[
        UndoStep(name="GPUShareNodes", says="The GPUShareNodes {objects} go.", objects=["gpu-1"]),
        UndoStep(name="finalizer", says="The policies go: {objects}.", objects=["default"]),
    ],
    warnings=[UndoWarning(says="No operator is available:", command="kubectl get deployments")],
    pods=[HeldPod(namespace="ml", name="anna\x1b[2J", node="gpu-1")],
)


def text(report: UndoReport, *, width: int = 80) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, markup=False)
    for part in undo_view(report, OutputPage(width=width, is_ascii=True)):
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def test_isolation_files_that_stay() -> None:
    plan = msgspec.structs.replace(PLAN, nodes_with_files=["gpu-1", "gpu-2"], warnings=[])
    assert (
        "  - Isolation files on gpu-1, gpu-2, in /var/lib/gpushare/isolation: remove that\n"
        "    folder when the pods have ended that were given some.\n"
    ) in text(UndoReport(outcome=UndoOutcome.DRY_RUN, plan=plan))
    assert "What stays: Isolation files on gpu-1, gpu-2" in text(
        UndoReport(outcome=UndoOutcome.UNDONE, plan=plan, residue=[])
    )


def test_what_waits_for_pods_that_need_isolation_files_can_go_on_without_them() -> None:
    waiting = {"default": "waiting for isolation files that pods need until they end: pods ml/anna"}
    report = UndoReport(outcome=UndoOutcome.TIMED_OUT, plan=PLAN, waiting_for=waiting, seconds=600)
    assert "kubectl annotate gpusharepolicy default gpushare.io/leave-isolation-files=true" in text(report)


def test_a_dry_run_shows_the_steps_what_stays_and_what_is_in_the_way() -> None:
    assert text(UndoReport(outcome=UndoOutcome.DRY_RUN, plan=PLAN)) == (
        "What deleting policy default does, in this order:\n"
        " 1. The GPUShareNodes gpu-1 go.\n"
        " 2. The policies go: default.\n"
        "\n"
        "What stays:\n"
        "  - 1 pod keeps running, on the cards that it has: ml/anna\\u001b[2J.\n"
        "  - Pods that ask for gpushare's resources and do not run yet stay Pending.\n"
        "  - What was installed: the operator, its rights, the CustomResourceDefinitions.\n"
        "\n"
        "What is in the way:\n"
        "  - No operator is available:\n"
        "    kubectl get deployments\n"
        "\n"
        "Nothing was changed: this is a dry run."
    )


def test_the_proof_ends_it() -> None:
    report = UndoReport(outcome=UndoOutcome.UNDONE, plan=PLAN, seconds=24.3, residue=[], looked=["objects"])
    assert text(report) == "Policy default is gone after 24 s.\nNothing is left. Looked at objects."
    assert report.exit_status is ExitStatus.GOOD


def test_what_is_left_is_named_and_is_a_no() -> None:
    left = [ResidueEntry(where="Node n", sentence="take it away", passes=False)]
    report = UndoReport(outcome=UndoOutcome.UNDONE, plan=PLAN, residue=left, looked=["objects"])
    assert "Node n: take it away" in text(report)
    assert report.exit_status is ExitStatus.NO


WAITING = {"default": "kube-scheduler is being restored on cp-1"}


@pytest.mark.parametrize(
    ("outcome", "heading", "status"),
    [
        (UndoOutcome.TIMED_OUT, "Not all is undone after 600 s.", ExitStatus.NO),
        (UndoOutcome.INTERRUPTED, "You ended the waiting, not the undoing.", ExitStatus.INTERRUPTED),
    ],
)
def test_a_waiting_that_ends_early_says_what_it_waited_for_and_that_the_operator_goes_on(
    outcome: UndoOutcome, heading: str, status: ExitStatus
) -> None:
    report = UndoReport(outcome=outcome, plan=PLAN, waiting_for=WAITING, seconds=600.0)
    shown = text(report)
    assert shown.startswith(heading)
    assert "Policy default: kube-scheduler is being restored on cp-1" in shown
    assert shown.endswith("The operator goes on by itself; run this again to wait longer.")
    assert report.exit_status is status


def test_a_no_changes_nothing() -> None:
    report = UndoReport(outcome=UndoOutcome.DECLINED, plan=PLAN)
    assert (text(report), report.exit_status) == ("Nothing was changed.", ExitStatus.NO)
