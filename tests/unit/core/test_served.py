"""What this version does not serve is named, together with what it serves instead."""

import pytest

from gpushare_core.api.enums import Source
from gpushare_core.api.served import Problem, source_problem


@pytest.mark.parametrize(
    ("found", "reason", "told"),
    [
        pytest.param(
            source_problem(Source.INVENTORY),
            "UnsupportedSource",
            "devices.source Inventory is not served by this version; use NVML or Simulated",
            id="source",
        ),
    ],
)
def test_it_says_what_works_instead(found: Problem | None, reason: str, told: str) -> None:
    assert found == Problem(reason, told)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(source_problem(Source.SIMULATED), id="simulated cards"),
        pytest.param(source_problem(Source.NVML), id="NVIDIA cards"),
    ],
)
def test_what_is_served_is_no_problem(found: Problem | None) -> None:
    assert found is None
