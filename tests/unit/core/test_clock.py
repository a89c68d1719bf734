"""Which clocks the programs go by."""

import time

import pytest

from gpushare_core.process.clock import steady_seconds, utc_now


def test_the_time_of_day_is_in_utc() -> None:
    assert utc_now().utcoffset() is not None
    assert not utc_now().utcoffset()


def test_seconds_go_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLOCK_MONOTONIC stands still then: a Lease must not go by it."""
    clocks = {time.CLOCK_BOOTTIME: 5000.0, time.CLOCK_MONOTONIC: 1000.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    assert steady_seconds() == 5000.0
