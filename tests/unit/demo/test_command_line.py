"""The demo shows what ``kubectl gpushare`` says, also where that is a no."""

from pathlib import Path

import pytest
from demo.command_line import COLUMNS, NotAnsweredError, answer_of
from demo.console import Console
from demo.stage import Stage

from gpushare_localcluster.build.binary import Binary
from gpushare_localcluster.build.minors import chosen_minor
from gpushare_localcluster.cluster import LocalCluster

KUBECTL = """#!/bin/sh
echo "$@ for $COLUMNS columns of $(basename $KUBECONFIG)"
echo told >&2
exit {status}
"""


class FakeCluster(LocalCluster):
    """Whose kubectl repeats what it is asked."""

    def __init__(self, directory: Path, status: int) -> None:
        super().__init__(directory)
        program = directory / "kubectl"
        program.write_text(KUBECTL.format(status=status))
        program.chmod(0o755)
        self._binaries = {chosen_minor(): Binary(path=program, programs=directory)}


@pytest.mark.parametrize("status", [0, 1])
def test_a_question_and_its_answer_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    Stage(FakeCluster(tmp_path, status), Console(lambda: 0.0)).ask("why", "units-20")
    assert capsys.readouterr().out == (
        "    $ kubectl gpushare why units-20\n"
        f"    gpushare why units-20 for {COLUMNS} columns of kubeconfig\n"
    )


def test_a_question_without_an_answer_ends_the_demo(tmp_path: Path) -> None:
    with pytest.raises(NotAnsweredError, match="kubectl gpushare status: told"):
        answer_of(FakeCluster(tmp_path, 2), "status")
