"""What becomes of an error that nobody has foreseen."""

import json
from pathlib import Path

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


@pytest.mark.parametrize(
    "words",
    [["status"], ["inspect"], ["why", "pod"], ["cordon", "gpu-1", "1"], ["simulate", "--waiting"], ["audit"]],
)
def test_an_api_server_that_is_away_is_all_that_is_said(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(json.dumps(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert program.main(words) == ExitStatus.CANNOT_LOOK
    said = capsys.readouterr().err
    assert said.startswith("kubectl gpushare: the API server is not reached: ")
    assert said.endswith("; see whether it answers kubectl: kubectl version\n")
