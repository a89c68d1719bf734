"""How fast the machine is, beside figures that depend on it."""

from bench.machine_speed import loop_seconds, sentence


def test_the_fastest_try_counts() -> None:
    times = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    assert loop_seconds(rounds=1, clock=lambda: next(times)) == 1.0


def test_it_is_told_as_it_was_before_and_afterwards() -> None:
    assert sentence(0.1, 0.205).endswith("in 100 ms before, and in 205 ms afterwards.")
