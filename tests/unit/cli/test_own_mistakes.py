"""What becomes of an error that nobody has foreseen."""

import pytest

from gpushare_cli import main as program
from gpushare_cli.report import ExitStatus


def test_a_mistake_of_the_program_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_options: object) -> int:
        raise KeyError("card\x1b[2J")

    monkeypatch.setattr(program, "_once", fails)
    assert program.main(["version"]) == ExitStatus.CANNOT_LOOK
    said = capsys.readouterr().err
    assert "KeyError" in said
    assert said.endswith("has made a mistake, and found nothing out: please report these lines\n")
    assert "\x1b" not in said
