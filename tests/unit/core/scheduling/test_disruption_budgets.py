"""How many pods PodDisruptionBudgets let go."""

import msgspec
import pytest
from tests.samples.preemption import bound, budget_json, budgets

from gpushare_core.scheduling.preemption.disruption_budgets import BudgetList, violating
from gpushare_core.text.json_object import Json

WEB = {"app": "web"}


def violations(pods: list[str], *bodies: Json) -> list[str]:
    return [pod.uid for pod in violating([bound(uid, labels=WEB) for uid in pods], budgets(*bodies))]


def test_without_budgets_everything_may_go() -> None:
    assert violations(["a", "b"]) == []


def test_a_budget_lets_go_as_many_as_it_allows() -> None:
    assert violations(["a", "b", "c"], budget_json(allowed=2, app="web")) == ["c"]


def test_of_several_budgets_the_strictest_counts() -> None:
    assert violations(["a"], budget_json(allowed=5, app="web"), budget_json("b", app="web")) == ["a"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(budget_json(app="other"), id="of other pods"),
        pytest.param(budget_json(namespace="other", app="web"), id="of another namespace"),
        pytest.param({**budget_json(app="web"), "spec": {}}, id="without a selector"),
    ],
)
def test_what_a_budget_is_not_about_may_go(body: Json) -> None:
    assert violations(["a"], body) == []


def test_an_empty_selector_selects_the_whole_namespace() -> None:
    assert violations(["a"], budget_json()) == ["a"]


def test_a_pod_whose_eviction_is_counted_already_counts_once() -> None:
    body = budget_json(allowed=0, app="web")
    body["status"]["disruptedPods"] = {"a": "2026-11-21T10:00:00Z"}
    assert violations(["a"], body) == []


@pytest.mark.parametrize(
    ("operator", "values", "selected"),
    [
        ("In", ["web", "db"], True),
        ("In", ["db"], False),
        ("NotIn", ["db"], True),
        ("NotIn", ["web"], False),
        ("Exists", None, True),
        ("DoesNotExist", None, False),
    ],
)
def test_expressions(operator: str, values: list[str] | None, *, selected: bool) -> None:
    body = budget_json()
    requirement = {"key": "app", "operator": operator, "values": values}
    body["spec"]["selector"] = {"matchExpressions": [requirement]}
    assert violations(["a"], body) == (["a"] if selected else [])


def test_what_is_no_selector_is_refused() -> None:
    body = budget_json()
    body["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Like"}]}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"items": [body]}, BudgetList)
