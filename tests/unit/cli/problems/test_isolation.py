"""What ``status`` says of isolation: nodes without it, containers without it, pods that were evicted."""

from typing import Any

import msgspec
import pytest
from tests.fakes.status_facts import condition, facts, node_object, nodes_of, policies_of, policy_object

from gpushare_cli.decide.objects.pod_event import EVICTED_FOR_MEMORY, ObservedEvent
from gpushare_cli.decide.problems.problem import StatusProblem
from gpushare_cli.decide.problems.table import all_problems
from gpushare_cli.decide.status import status_report
from gpushare_core.text.json_object import Json

HOOK: Json = {"memory": "Hook"}


def share(uid: str, isolation: str = "", container: str = "main") -> Json:
    return {"uid": uid, "container": container, "units": 4, "isolation": isolation}


def isolated(
    *conditions: Json, name: str = "gpu-1", shares: tuple[Json, ...] = (), given: str = "Hook", **spec: Any
) -> Json:
    cards = [{"index": 0, "units": 16, "allocatedUnits": len(shares), "pods": [*shares]}]
    node = node_object(*conditions, name=name, cards=cards, isolation=given)
    return {**node, "spec": {**node["spec"], "isolation": HOOK, **spec}}


def problems(*nodes: Json, **more: Any) -> list[StatusProblem]:
    return all_problems(facts(nodes=nodes_of(*nodes), **more))


def evicted(name: str, moment: str) -> ObservedEvent:
    event = {
        "reason": EVICTED_FOR_MEMORY,
        "regarding": {"namespace": "ml", "name": name},
        "eventTime": moment,
        "note": f"container main of {name} has 9Gi",
    }
    return msgspec.convert(event, ObservedEvent)


def test_where_every_container_is_held_there_is_no_problem() -> None:
    held = isolated(
        condition("IsolationReady", "True", "Hook"),
        condition("IsolationInForce", "True", "InForce"),
        shares=(share("a", "Hook"),),
    )
    assert problems(held) == []


@pytest.mark.parametrize(
    ("type_", "status", "severity"),
    [
        ("IsolationReady", "False", "error"),
        ("IsolationReady", "Unknown", "warning"),
        ("IsolationInForce", "False", "warning"),
        ("IsolationInForce", "Unknown", "warning"),
    ],
)
def test_each_condition_with_what_the_plugin_says(type_: str, status: str, severity: str) -> None:
    (problem,) = problems(isolated(condition(type_, status, "SomeReason", "install it")))
    assert (problem.severity, problem.reason, problem.detail) == (severity, "SomeReason", "install it")
    assert "{" not in problem.command


def test_what_policy_and_node_both_say_is_said_once() -> None:
    node = isolated(condition("IsolationInForce", "False", "IsolationNotInForce", "its file is gone"))
    policy = policy_object(condition("Degraded", "True", "IsolationNotInForce", "on gpu-1"))
    (problem,) = problems(node, policies=policies_of(policy))
    assert (problem.kind, problem.detail) == ("node", "its file is gone")


def test_what_the_driver_holds_to_its_smallest_share_is_a_note() -> None:
    said = "container main of pod ml/a on card GPU-gpu-1-0, given Driver: 8Gi of 16Gi"
    (note,) = problems(isolated(condition("IsolationInForce", "True", "InForce", said)))
    assert (note.severity, note.reason) == ("note", "SmallestShare")
    assert note.detail == "container main of pod ml/a on card 0, given Driver: 8Gi of 16Gi"


def test_a_share_that_is_too_small_for_a_context_is_a_note() -> None:
    said = "container main of pod ml/a on card GPU-gpu-1-0, given Hook: its share of 256Mi is used up"
    (note,) = problems(isolated(condition("IsolationInForce", "True", "ShareTooSmall", said)))
    assert (note.severity, note.reason) == ("note", "ShareTooSmall")
    assert "too small a share" in note.sentence


def test_containers_from_before_are_a_note() -> None:
    shares = (share("a"), share("a", container="two"), share("b", "Hook"))
    (note,) = problems(isolated(shares=shares), isolated(name="gpu-2", shares=(share("c"),)))
    assert (note.severity, note.names, note.policy) == ("note", ("gpu-1", "gpu-2"), "default")
    assert note.sentence == (
        "3 older containers run without the isolation that the policy asks for, until their pods are"
        " created again"
    )
    assert note.command == "kubectl gpushare inspect gpu-1 gpu-2"


@pytest.mark.parametrize(
    ("reserved", "found"), [("0", []), ("1Gi", ["ContainersWithoutIsolation"])], ids=["none", "some"]
)
def test_a_whole_card_needs_a_limit_where_something_is_reserved(reserved: str, found: list[str]) -> None:
    whole = isolated(shares=(share("a"),), mode="Exclusive", reservedMemory=reserved)
    assert [problem.reason for problem in problems(whole)] == found


def test_a_node_that_cannot_have_it_does_not_count_containers() -> None:
    ready = condition("IsolationReady", "False", "HookMissing", "no library")
    (problem,) = problems(isolated(ready, shares=(share("a"),), given="Unavailable"))
    assert problem.reason == "HookMissing"


def test_a_plugin_that_knows_no_isolation_is_a_problem_where_it_is_asked_for() -> None:
    (problem,) = problems(isolated(shares=(share("a"),), given=""))
    assert (problem.severity, problem.reason) == ("warning", "IsolationUnknown")
    assert problem.command == "kubectl gpushare version"


def test_pods_that_were_evicted_lately() -> None:
    events = [evicted("old", "2026-05-01T11:30:00Z"), evicted("new", "2026-05-01T11:58:00Z")]
    (problem,) = problems(isolated(), evictions=[*events, events[0]])
    assert (problem.severity, problem.kind, problem.names) == ("warning", "pod", ("ml/new", "ml/old"))
    assert problem.detail == "2m ago: container main of new has 9Gi"
    assert problem.command == "kubectl get events -A --field-selector reason=EvictedForMemory"


def test_what_a_policy_asks_for_is_in_its_line() -> None:
    policy = policy_object()
    rules = [
        {"names": ["a"], "isolation": HOOK},
        {"names": ["b"], "isolation": {"memory": "Driver", "onExcess": "Evict"}},
        {"names": ["c"]},
    ]
    asked = {**policy, "spec": {**policy["spec"], "nodes": rules}}
    assert [state.isolation for state in status_report(facts(policies=policies_of(asked))).policies] == [
        "Hook, Driver, evicts"
    ]
    assert status_report(facts()).policies[0].isolation == ""
