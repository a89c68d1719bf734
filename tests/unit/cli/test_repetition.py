"""A command that is repeated until it is stopped."""

import pytest

from gpushare_cli.repetition import pause


def test_auditors_that_were_started_together_do_not_stay_together() -> None:
    pauses = [pause(300.0) for _ in range(100)]
    assert len(set(pauses)) > 50
    assert min(pauses) >= 225
    assert max(pauses) <= 375
    assert sum(pauses) / len(pauses) == pytest.approx(300, rel=0.1)
