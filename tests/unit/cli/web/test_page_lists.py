"""The list of pods that wait, and that of problems."""

import msgspec
import pytest
from tests.samples.shared_cards import pending, pending_pod_object, raw

from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.decide.web import page_lists
from gpushare_cli.decide.web.page_lists import MAX_NAMES, WaitingList, page_problem, waiting_list
from gpushare_core.text.json_object import Json


def waiting(*pods: Json) -> WaitingList:
    unplaced = [msgspec.json.decode(raw(pod), type=UnplacedPod) for pod in pods]
    return waiting_list(unplaced, map(pending, pods))


def test_pods_that_wait_say_what_they_ask_for_and_since_when() -> None:
    young = pending_pod_object("a/young", 4, creationTimestamp="2026-01-02T03:00:00Z")
    old = pending_pod_object("a/old", 17, message="no card", creationTimestamp="2026-01-01T03:00:00Z")
    found = waiting(young, old)
    assert [(pod.name, pod.asks, pod.reason) for pod in found.pods] == [
        ("old", {"gpushare.io/memory": 17}, "no card"),
        ("young", {"gpushare.io/memory": 4}, ""),
    ]


def test_a_name_that_is_none_of_ours_has_no_amount() -> None:
    (pod,) = waiting(pending_pod_object("a/wrong", 4, resource="gpushare.io/mem")).pods
    assert pod.asks == {"gpushare.io/mem": None}


def test_pods_of_nodes_and_of_others_do_not_wait_for_us() -> None:
    bound = pending_pod_object("a/bound", 4, node="n1")
    other = pending_pod_object("a/other", 4, resource="example.com/other")
    assert waiting(bound, other).total == 0


def test_the_list_ends_and_the_number_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_lists, "MAX_PODS", 3)
    found = waiting(*(pending_pod_object(f"a/p{at}", 1) for at in range(5)))
    assert (found.total, len(found.pods)) == (5, 3)


def test_a_problem_of_thousands_names_some_and_counts_all() -> None:
    names = tuple(f"gpu-{at}" for at in range(4_000))
    problem = StatusProblem(severity=Severity.ERROR, reason="R", kind="node", names=names, sentence="s")
    found = page_problem(problem)
    assert (found.total, len(found.names)) == (4_000, MAX_NAMES)
