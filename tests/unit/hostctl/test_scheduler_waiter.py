"""Waiting for kube-scheduler, with a clock of the test's own."""

import math

import pytest
from tests.fakes.hostctl_prober import ScriptedProber, SleepClock
from tests.samples.hostctl import ENDPOINT, NOBODY_LISTENS, process, serving, starting

from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.host.scheduler_waiter import INTERVAL, SchedulerNotServingError, SchedulerWaiter


def waiter(*probes: ProbeResult, timeout: float = 10.0) -> SchedulerWaiter:
    clock = SleepClock()
    return SchedulerWaiter(
        prober=ScriptedProber(probes), clock=clock.read, sleep=clock.sleep, timeout=timeout
    )


def test_waiting_ends_with_the_new_process() -> None:
    waiter(serving("old"), NOBODY_LISTENS, serving("new")).until_restarted(ENDPOINT, before=process("old"))


def test_waiting_for_a_restart_says_what_it_saw_last() -> None:
    with pytest.raises(
        SchedulerNotServingError, match=r"https://127.0.0.1:10259/readyz within 10 s .*refused"
    ):
        waiter(serving("old"), NOBODY_LISTENS).until_restarted(ENDPOINT, before=process("old"))


def test_half_the_time_of_steady_service_counts_as_a_missed_restart() -> None:
    waiter(serving("old")).until_restarted(ENDPOINT, before=process("old"), may_miss_restart=True)


def test_waiting_for_service_takes_any_process() -> None:
    waiter(NOBODY_LISTENS, serving("old")).until_serving(ENDPOINT)


def test_waiting_for_service_gives_up_at_the_deadline() -> None:
    with pytest.raises(SchedulerNotServingError, match="within 10 s"):
        waiter(starting("old")).until_serving(ENDPOINT)


def test_waiting_for_service_may_have_less_time() -> None:
    with pytest.raises(SchedulerNotServingError, match="within 2 s"):
        waiter(starting("old")).until_serving(ENDPOINT, timeout=2.0)


def test_a_check_that_fails_ends_the_wait() -> None:
    def check() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        waiter(serving("new")).until_restarted(ENDPOINT, before=process("old"), check=check)


@pytest.mark.parametrize(
    ("timeout", "proven", "unproven"),
    [pytest.param(120.0, 10.0, 25.0, id="the default"), pytest.param(30.0, 10.0, 15.0, id="the shortest")],
)
def test_service_is_asked_for_within_the_timeout(timeout: float, proven: float, unproven: float) -> None:
    awaited = waiter(serving("new"), timeout=timeout)

    assert (awaited.proven, awaited.unproven) == (proven, unproven)


def test_waiting_for_lasting_service_takes_no_process_that_falls() -> None:
    falling = [*[serving("a")] * int(4 / INTERVAL), NOBODY_LISTENS] * 4

    with pytest.raises(SchedulerNotServingError):
        waiter(*falling).until_serving(ENDPOINT, lasting=5.0)
    assert waiter(*falling, serving("b"), timeout=30.0).until_serving(ENDPOINT, lasting=5.0) == serving("b")


def test_how_long_service_has_to_last_may_change_while_waiting() -> None:
    knows = iter([math.inf] * int(5 / INTERVAL))

    awaited = waiter(serving("new"))
    start = awaited.clock()
    awaited.until_restarted(ENDPOINT, before=process("old"), lasting=lambda: next(knows, 2.0))
    assert awaited.clock() - start == pytest.approx(5.0 + 2.0)
