"""A command that is repeated until it is stopped."""

import os
import signal

import pytest

from gpushare_cli.repetition import pause, repeat


def test_auditors_that_were_started_together_do_not_stay_together() -> None:
    pauses = [pause(300.0) for _ in range(100)]
    assert len(set(pauses)) > 50
    assert min(pauses) >= 225
    assert max(pauses) <= 375
    assert sum(pauses) / len(pauses) == pytest.approx(300, rel=0.1)


@pytest.mark.parametrize("lines", [1, 0])
def test_no_time_is_printed_between_documents(lines: int, capsys: pytest.CaptureFixture[str]) -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def stopped() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        return 1

    try:
        assert repeat(stopped, every=300, prints_time=bool(lines)) == 1
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert len(capsys.readouterr().out.splitlines()) == lines
