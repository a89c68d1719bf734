"""What people see of an explanation, at 80 columns."""

from typing import Any

from rich.console import Console
from tests.samples.why import (
    MEMORY,
    bound_pods,
    card_json,
    event,
    full_node,
    memory_pod,
    owned_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.explain import explain
from gpushare_cli.output.page import OutputPage
from gpushare_cli.report import ExitStatus
from gpushare_cli.views.why import why_view
from gpushare_core.text.json_object import Json


def seen(pod: Json, *share_nodes: Json, **facts: Any) -> list[str]:
    console = Console(width=80, markup=False, highlight=False, force_terminal=False)
    with console.capture() as captured:
        for part in why_view(explain(situation(pod, share_nodes, **facts)), OutputPage(width=80)):
            console.print(part, crop=False)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_answer_comes_first_and_the_schedulers_words_last() -> None:
    lines = seen(
        memory_pod(12),
        full_node("gpu-2", 9),
        neighbours={"gpu-2": bound_pods(owned_pod("gpu-2-last"))},
        budgets=[],
        events=[event(note="0/1 nodes are available: 1 insufficient GPU memory")],
    )
    assert lines == [
        "Pod ml/train waits for 5m: no card has 12 units (12Gi) free on gpu-2.",
        "  Nearest: gpu-2 card 1: 9 of the 12 units free, held by ml/gpu-2-last 7",
        "",
        "Asks for",
        "  gpushare.io/memory: 12 units (12Gi); a unit is 1Gi",
        "",
        "What would help",
        "  Ask for less: 9 units (9Gi) of gpushare.io/memory would fit now, on gpu-2.",
        "  That takes a new pod.",
        "  Without ml/gpu-2-last (7 units, priority 0) it would fit gpu-2 card 1. Not",
        "  evicted for it: the priority of ml/gpu-2-last is not below its own, 0.",
        "    kubectl delete pod -n ml gpu-2-last",
        "  A priority above 0 (it has 0): then pods such as ml/gpu-2-last would be",
        "  evicted for it.",
        "    kubectl get priorityclasses",
        "  One more node like gpu-2 (2 cards of 16 units (16Gi)).",
        "",
        "Waits",
        "  For 5m, since 2026-11-21T10:00:00Z.",
        "  Tried at least once without finding a node, last noted at",
        "  2026-11-21T10:00:01Z.",
        "",
        "What scheduler and kubelet say",
        "  default-scheduler, FailedScheduling: 0/1 nodes are available: 1 insufficient",
        "  GPU memory",
    ]


def test_a_running_pod() -> None:
    pod = memory_pod(4, nodeName="gpu-1")
    pod["status"] = {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}
    lines = seen(pod, share_node_json("gpu-1", card_json(0, held={"ml/train": 4, "ml/b": 2})))
    assert lines[0] == "Pod ml/train runs for 5m on gpu-1, card 0."
    assert "  gpu-1 card 0 (GPU-gpu-1-0): has 4 (4Gi) of 16 units, 10 free" in lines
    assert "    beside ml/b: 2" in lines
    assert "Why there" in lines


def test_containers_are_listed_where_there_are_several() -> None:
    lines = seen(pod_json(init={"load": {MEMORY: 12}}, main={MEMORY: 3}), full_node("gpu-1", 9))
    assert lines[lines.index("Asks for") + 1 :][:3] == [
        "  gpushare.io/memory: 12 units (12Gi); a unit is 1Gi",
        "    init container load: 12",
        "    container main: 3",
    ]


def test_a_manifest_that_would_fit_now() -> None:
    pod = memory_pod(4)
    report = explain(situation(pod, [full_node("gpu-1", 9)], exists=False))
    assert report.exit_status is ExitStatus.GOOD
    lines = seen(pod, full_node("gpu-1", 9), exists=False)
    assert lines[0] == "Pod ml/train would get its cards now, on gpu-1."
    assert "Waits" not in lines


def test_text_from_objects_moves_no_cursor() -> None:
    lines = seen(memory_pod(12), full_node("gpu-2"), events=[event(note="\x1b[2J[bold]red")])
    assert lines[-1] == "  default-scheduler, FailedScheduling: \\u001b[2J[bold]red"


def test_what_could_not_be_read_is_said() -> None:
    unread = {"GPUShareNodes": "the API server does not list them: 403"}
    lines = seen(memory_pod(4), unread=unread, events=[event()])
    assert lines[0] == "Pod ml/train waits for an unknown reason: the GPUShareNodes cannot be read."
    assert lines[-2] == "What could not be read"
    assert lines[-1] == "  GPUShareNodes: the API server does not list them: 403"


def test_missing_rights_are_said_in_one_sentence() -> None:
    unread = {
        "GPUShareNodes": "403 Forbidden: no",
        "Pending pods": "403 Forbidden: nor these",
        "Nodes": "late",
    }
    lines = seen(memory_pod(4), unread=unread, events=[event()])
    assert lines[lines.index("What could not be read") + 1 :] == [
        "  You may not list GPUShareNodes, Pending pods (403 Forbidden); -o json has what",
        "  the API server says.",
        "  Nodes: late",
    ]


def test_what_cannot_be_known_has_an_exit_status_of_its_own() -> None:
    facts = situation(memory_pod(4), unread={"GPUShareNodes": "403"}, events=[event()])
    assert explain(facts).exit_status is ExitStatus.CANNOT_LOOK


def test_a_pod_that_was_made_just_now() -> None:
    pod = memory_pod(4)
    pod["metadata"]["creationTimestamp"] = "2026-11-21T10:04:58Z"
    lines = seen(pod, full_node("gpu-1", 9))
    assert lines[0] == "Pod ml/train waits for 2s, and its cards are there now, on gpu-1."
    assert "  No scheduler has said yet that it finds no node: ask again in a few seconds." in lines


def test_what_a_scheduler_wrote_into_the_pod_outlives_its_events() -> None:
    pod = memory_pod(12)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    pod["status"]["conditions"] = [condition]
    lines = seen(pod, full_node("gpu-1", 9))
    assert "  How often a scheduler has tried it is not known: Events are kept for an hour." in lines
    assert lines[-1] == "  scheduler, Unschedulable: 0/3 nodes"
