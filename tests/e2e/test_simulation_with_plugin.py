"""Simulated clusters whose pods the Go engine of kube-scheduler's plugin places: see docs/simulation.md.

Among the end-to-end tests, because only these have a Go toolchain.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.samples.pod_shapes import SPECS
from tests.simulation.__main__ import engines_of
from tests.simulation.go_engine import GoEngines
from tests.simulation.operations import QUIET, Step, draw
from tests.simulation.runner import DifferentError, run

from gpushare_core.api.enums import Engine
from gpushare_core.text.json_object import Json

pytestmark = pytest.mark.e2e

BURST = [*(Step(0.1, "create", 0, at) for at in range(12)), Step(0.0, QUIET, 0, 0)]


@pytest.fixture(scope="module")
def go_engines() -> Iterator[GoEngines]:
    with engines_of(Engine.PLUGIN) as engines:
        assert engines is not None
        yield engines


@pytest.mark.parametrize("mode", list(SPECS))
def test_all_books_agree_whatever_happens(mode: str, go_engines: GoEngines) -> None:
    outcome = run(mode, 1, draw(1, 60), go_engines=go_engines)
    assert outcome.steps == 60
    assert outcome.agreed_after


def test_a_seed_says_all(go_engines: GoEngines) -> None:
    first, second = (run("Memory", 3, draw(3, 40), go_engines=go_engines).writes for _ in range(2))
    assert first == second


class Deaf(GoEngines):
    """Never tells that a pod is gone, or what a GPUShareNode says."""

    unheard = ""

    def __init__(self, engines: GoEngines) -> None:
        self._engines = engines

    def ask(self, engine: str, do: str, **what: Any) -> Json:
        return {} if do == self.unheard else self._engines.ask(engine, do, **what)


@pytest.mark.parametrize("unheard", ["gone", "share"])
def test_an_engine_that_does_not_hear_is_found(unheard: str, go_engines: GoEngines) -> None:
    deaf = Deaf(go_engines)
    deaf.unheard = unheard
    ends = [Step(0.5, "delete", 0, at) for at in range(6)]
    with pytest.raises(DifferentError, match="the extender"):
        run("Memory", 1, [*BURST, *ends, Step(0.0, QUIET, 0, 0)], go_engines=deaf)
