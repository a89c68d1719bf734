"""Delays grow, stay within bounds, and start anew after a success."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.kube.backoff import Backoff, backoff_delay


@pytest.mark.parametrize(
    ("failures", "delay"),
    [
        pytest.param(0, 0.0, id="none failed"),
        pytest.param(1, 0.5, id="first"),
        pytest.param(2, 1.0, id="doubled"),
        pytest.param(5, 8.0, id="four times doubled"),
        pytest.param(6, 10.0, id="the most"),
        pytest.param(10**9, 10.0, id="for ever"),
    ],
)
def test_the_delay_doubles_up_to_the_most(failures: int, delay: float) -> None:
    assert backoff_delay(failures, first=0.5, most=10.0) == delay


@given(st.floats(0, 1), st.integers(1, 40))
def test_jitter_takes_at_most_half_away(jitter: float, failures: int) -> None:
    backoff = Backoff(first=1.0, most=60.0, jitter=lambda: jitter)
    delays = [backoff.next_delay() for _ in range(failures)]
    whole = backoff_delay(failures, first=1.0, most=60.0)
    assert whole / 2 <= delays[-1] <= whole


async def test_after_a_success_the_first_delay_comes_again() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    backoff = Backoff(first=1.0, sleep=sleep, jitter=lambda: 1.0)
    await backoff.wait()
    await backoff.wait()
    backoff.reset()
    await backoff.wait()
    assert slept == [1.0, 2.0, 1.0]


def test_its_delays_never_end_and_begin_anew_for_everybody() -> None:
    """kopf gives up where they do."""
    backoff = Backoff(first=0.5, most=30.0, jitter=lambda: 1.0)
    delays = iter(backoff)
    assert [next(delays) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(next(delays) == 30 for _ in range(1000))
    assert next(iter(backoff)) == backoff.next_delay() == 0.5


@given(st.floats(0, 1), st.integers(1, 40), st.floats(0.001, 30))
def test_what_a_server_asks_for_is_waited_for_and_half_of_it_more_at_most(
    jitter: float, failures: int, least: float
) -> None:
    backoff = Backoff(first=1.0, most=60.0, jitter=lambda: jitter)
    delays = [backoff.next_delay(least) for _ in range(failures)]
    own = backoff_delay(failures, first=1.0, most=60.0)
    assert max(least, own / 2) <= delays[-1] <= max(least * 1.5, own)
