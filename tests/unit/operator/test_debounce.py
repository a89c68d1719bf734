"""Several changes within seconds become one edit."""

from tests.fakes.extender_clock import FakeClock

from gpushare_operator.work_queue import Debounce


def test_what_changes_again_waits_anew_and_what_stays_is_done() -> None:
    clock = FakeClock(100.0)
    debounce = Debounce(3.0, clock)
    assert debounce.seconds_left("a") == 3.0
    clock.now += 2.0
    assert debounce.seconds_left("a") == 1.0
    assert debounce.seconds_left("b") == 3.0
    clock.now += 3.0
    assert debounce.seconds_left("b") == 0.0
    clock.now += 100.0
    assert debounce.seconds_left("b") == 0.0


def test_without_a_delay_everything_is_done_at_once() -> None:
    assert Debounce(0.0, FakeClock(0.0)).seconds_left("a") == 0.0
