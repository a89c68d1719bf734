"""What kopf gets of us."""

from gpushare_operator.cluster.kopf_frame import EndlessBackoff


def test_delays_between_calls_never_end() -> None:
    delays = iter(EndlessBackoff(jitter=lambda: 1.0))
    assert [next(delays) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(15 <= next(delays) <= 30 for _ in range(1000))
