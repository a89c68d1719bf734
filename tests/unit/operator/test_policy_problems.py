"""What of a policy is not served, and what works instead."""

import pytest
from tests.samples.operator import rule, spec

from gpushare_core.api.enums import Backend, DialectName, Mode
from gpushare_core.api.served import combination_problem
from gpushare_operator.decide.policy_problems import problems, rule_problem

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
