"""What of a policy is not served, and what works instead."""

from typing import Any

import pytest
from tests.samples.operator import rule, spec

from gpushare_core.api.enums import Backend, DialectName, Mode
from gpushare_core.api.served import combination_problem
from gpushare_operator.policies.served import covered_rules, problems, rule_problem

OTHERS = [mode for mode in Mode if mode not in (Mode.MEMORY, Mode.OFF)]


@pytest.mark.parametrize("mode", [Mode.MEMORY, Mode.SLICES, Mode.EXCLUSIVE])
@pytest.mark.parametrize("dialect", DialectName)
def test_every_dialect_is_served_in_every_mode(dialect: DialectName, mode: Mode) -> None:
    slices = {"slicesPerCard": 2} if mode is Mode.SLICES else {}
    assert problems(spec(rule("gpu-1", mode=mode, **slices), dialect=dialect)) == []


@pytest.mark.parametrize("mode", OTHERS)
def test_volcanos_scheduler_shares_memory_only(mode: Mode) -> None:
    problem = combination_problem(Backend.VOLCANO, mode)
    assert problem is not None
    assert problem.reason == "UnsupportedMode"
    assert problem.message.startswith(f"mode {mode} is not served with scheduler.backend Volcano;")
    assert "use mode Memory, or scheduler.backend " in problem.message
    assert "KubeScheduler" in problem.message
    asked = spec(rule("gpu-1", mode=mode, slicesPerCard=2 if mode in (Mode.SLICES, Mode.MIXED) else None))
    volcano = asked.model_copy(
        update={"scheduler": asked.scheduler.model_copy(update={"backend": Backend.VOLCANO})}
    )
    assert rule_problem(volcano, volcano.nodes[0]) == problem
    assert rule_problem(asked, asked.nodes[0]) is None


@pytest.mark.parametrize("backend", Backend)
def test_memory_is_served_by_every_backend(backend: Backend) -> None:
    assert combination_problem(backend, Mode.MEMORY) is None


def labels(**values: str) -> dict[str, Any]:
    return rule(selector={"matchLabels": values})


def requires(key: str, operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": key, "operator": operator, "values": [*values]}
    return rule(selector={"matchExpressions": [expression]})


@pytest.mark.parametrize(
    ("earlier", "later", "is_covered"),
    [
        pytest.param(labels(a="b"), labels(a="b"), True, id="the same"),
        pytest.param(labels(a="b"), labels(a="b", c="d"), True, id="one more label"),
        pytest.param(labels(a="b", c="d"), labels(a="b"), False, id="one label less"),
        pytest.param(labels(a="b"), labels(a="c"), False, id="another value"),
        pytest.param(labels(a="b"), requires("a", "In", "b"), True, id="in other words"),
        pytest.param(requires("a", "In", "b", "c"), labels(a="c"), True, id="one of its values"),
        pytest.param(requires("a", "In", "b"), requires("a", "In", "b", "c"), False, id="one value more"),
        pytest.param(requires("a", "Exists"), labels(a="b"), True, id="any value"),
        pytest.param(requires("a", "Exists"), requires("a", "NotIn", "b"), False, id="not there at all"),
        pytest.param(requires("a", "NotIn", "b"), requires("a", "NotIn", "b", "c"), True, id="fewer values"),
        pytest.param(requires("a", "NotIn", "b", "c"), requires("a", "NotIn", "b"), False, id="more values"),
        pytest.param(requires("a", "DoesNotExist"), requires("a", "DoesNotExist"), True, id="not there"),
        pytest.param(requires("a", "DoesNotExist"), labels(a="b"), False, id="the contrary"),
        pytest.param(rule("gpu-1"), labels(a="b"), False, id="names say nothing of labels"),
    ],
)
def test_a_rule_gets_no_node_where_an_earlier_one_requires_less(
    earlier: dict[str, Any], later: dict[str, Any], *, is_covered: bool
) -> None:
    assert covered_rules(spec(earlier, later)) == ({1} if is_covered else set())
