"""A demo cluster that is running is somebody's: it is replaced only by who wants that."""

import io
from pathlib import Path

import pytest
from demo import __main__ as demo
from demo.console import Console
from demo.replacement import QUESTION, NotReplacedError, require_consent

from gpushare_localcluster.cluster import LocalCluster


class DemoCluster(LocalCluster):
    """One of which is known whether it is running."""

    runs = True

    def is_running(self) -> bool:
        return self.runs

    def stop(self) -> None:
        self.runs = False


@pytest.fixture
def cluster(tmp_path: Path) -> DemoCluster:
    return DemoCluster(tmp_path)


def clear(cluster: DemoCluster, *, replace: bool = False) -> None:
    demo.clear_the_stage(cluster, Console(lambda: 0.0), replace=replace)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sits before the terminal, as in a script."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))


@pytest.mark.usefixtures("nobody")
def test_where_nobody_can_be_asked_it_stays_and_the_text_says_what_to_do(cluster: DemoCluster) -> None:
    with pytest.raises(NotReplacedError, match="make demo REPLACE=1"):
        clear(cluster)
    assert cluster.runs


@pytest.mark.usefixtures("nobody")
def test_whoever_says_so_beforehand_is_not_asked(cluster: DemoCluster) -> None:
    clear(cluster, replace=True)
    assert not cluster.runs


@pytest.mark.usefixtures("nobody")
def test_where_none_is_running_nobody_is_asked(cluster: DemoCluster) -> None:
    cluster.runs = False
    clear(cluster)


@pytest.mark.parametrize("answer", ["y", "Yes", " y "])
def test_a_person_may_agree(answer: str) -> None:
    asked: list[str] = []
    require_consent(lambda question: asked.append(question) or answer)  # type: ignore[func-returns-value]
    assert asked == [QUESTION]


@pytest.mark.parametrize("answer", ["", "n", "no", "what?"])
def test_anything_else_is_a_no(answer: str) -> None:
    with pytest.raises(NotReplacedError):
        require_consent(lambda _: answer)


def test_the_end_of_the_input_is_a_no() -> None:
    def ask(question: str) -> str:
        raise EOFError(question)

    with pytest.raises(NotReplacedError):
        require_consent(ask)


@pytest.mark.usefixtures("nobody")
def test_the_demo_ends_with_a_failure_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "LocalCluster", DemoCluster)
    monkeypatch.setattr("sys.argv", ["demo"])
    assert demo.main() == 1
    said = capsys.readouterr()
    assert (said.out, max(map(len, said.err.splitlines())) <= 80) == ("", True)
