"""What this version does not serve is named, together with what it serves instead."""

import pytest

from gpushare_core.api.enums import Backend
from gpushare_core.api.served import Problem, backend_problem


@pytest.mark.parametrize(
    ("found", "reason", "told"),
    [
        pytest.param(
            backend_problem(Backend.DEDICATED),
            "UnsupportedBackend",
            "scheduler.backend Dedicated is not served by this version;"
            " use External or KubeScheduler or Volcano",
            id="backend",
        ),
    ],
)
def test_it_says_what_works_instead(found: Problem | None, reason: str, told: str) -> None:
    assert found == Problem(reason, told)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(backend_problem(Backend.KUBE_SCHEDULER), id="kube-scheduler"),
    ],
)
def test_what_is_served_is_no_problem(found: Problem | None) -> None:
    assert found is None
