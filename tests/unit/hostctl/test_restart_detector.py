"""When probes of kube-scheduler add up to a process that works, and to another one than before."""

import pytest
from tests.samples.hostctl import NOBODY_LISTENS, serving, starting

from gpushare_hostctl.decide.restart_detector import ProbeResult, RestartDetector


@pytest.mark.parametrize(
    ("probes", "seen"),
    [
        pytest.param([serving("new")] * 3, True, id="another certificate"),
        pytest.param(
            [NOBODY_LISTENS, *[serving("old")] * 3], True, id="away and back with a lasting certificate"
        ),
        pytest.param([serving("old")] * 3, False, id="the old process"),
        pytest.param([serving("new")] * 2, False, id="not yet steady"),
        pytest.param(
            [serving("new"), NOBODY_LISTENS, serving("newer"), NOBODY_LISTENS] * 3,
            False,
            id="starting and falling",
        ),
        pytest.param([serving("a"), serving("b"), serving("a"), serving("b")], False, id="two in turn"),
        pytest.param([starting("new")] * 9, False, id="alive but not ready"),
        pytest.param(
            [starting("old"), *[serving("old")] * 3], False, id="the old process, unready for a while"
        ),
        pytest.param([NOBODY_LISTENS, starting("new"), *[serving("new")] * 3], True, id="a usual restart"),
    ],
)
def test_a_restart_is_distinguished_from_the_process_before(probes: list[ProbeResult], seen: bool) -> None:  # noqa: FBT001
    restart = RestartDetector(before="old")

    assert any(restart.observe(probe, now=second) for second, probe in enumerate(probes)) is seen


def test_any_process_is_new_where_none_served_before() -> None:
    restart = RestartDetector(before=None)

    assert [restart.observe(serving("x"), now=0.0) for _ in range(3)] == [False, False, True]


def test_a_restart_too_short_to_be_seen_counts_after_steady_service() -> None:
    restart = RestartDetector(before="old", assume_missed_after=3.0)

    assert [restart.observe(serving("old"), now=second) for second in range(5)] == [False] * 3 + [True] * 2


def test_service_that_was_interrupted_counts_anew() -> None:
    restart = RestartDetector(before="old", assume_missed_after=3.0)
    probes = [serving("old"), serving("old"), starting("old"), *[serving("old")] * 3]

    assert not any(restart.observe(probe, now=second) for second, probe in enumerate(probes))
