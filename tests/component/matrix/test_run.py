"""The tests of one minor are run by a pytest of their own, and what came of each is known however it ends."""

import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from matrix import checkout
from matrix.__main__ import main
from matrix.checkout import Checkout
from matrix.report import ROOT, MatrixRow
from matrix.run import ALL_TESTS, INTERRUPTED, NOT_BUILT, MinorRun, problem_of

from gpushare_localcluster.waiting import wait_until

TESTS = """
import os
import pytest

@pytest.fixture
def broken():
    raise OSError

@pytest.fixture
def breaks_afterwards():
    yield
    raise OSError

@pytest.mark.parametrize("size", ["1Gi", "half a unit"])
def test_passes(size, record_property):
    record_property("Kubernetes", os.environ["GPUSHARE_KUBERNETES"] + ".4")
    assert "GPUSHARE_LOCALCLUSTER_BINARY" not in os.environ
    assert os.environ["GPUSHARE_UPGRADE"] == "1.35 1.36"

def test_fails():
    assert False

def test_cannot_begin(broken): ...

def test_ends_badly(breaks_afterwards): ...

def test_is_skipped():
    pytest.skip("the kernel lacks it")

class TestGroup:
    def test_in_a_class(self):
        assert False

@pytest.mark.same_everywhere("why")
def test_that_is_left_out(): ...
"""
HANGS = """
import time
from pathlib import Path

def test_passes(): ...

def test_hangs():
    Path(__file__).with_name("begun").touch()
    time.sleep(600)
"""


def minor_run(folder: Path, tests: str, *, processes: str = "0", seconds: float = 120.0) -> MinorRun:
    (folder / "test_some.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = same_everywhere\n")
    return MinorRun("1.36", (str(folder / "test_some.py"),), processes, seconds)


@pytest.fixture(scope="module", autouse=True)
def built() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MinorRun, "_build", lambda _run: True)
        patch.setenv("GPUSHARE_LOCALCLUSTER_BINARY", "/of/one/minor")
        yield


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> MatrixRow:
    """Of a whole run, in a process beside pytest's own as those of the end-to-end tests are."""
    return minor_run(tmp_path_factory.mktemp("whole"), TESTS, processes="1").row()


def names(tests: Iterable[str]) -> list[str]:
    return [test.partition("::")[2] for test in tests]


def test_each_test_counts_once_and_those_that_are_the_same_everywhere_are_left_out(row: MatrixRow) -> None:
    assert (row.passed, row.problem, row.is_clean) == (2, "", False)


def test_what_failed_itself_before_or_afterwards_is_named(row: MatrixRow) -> None:
    assert names(row.failed) == [
        "test_fails",
        "test_cannot_begin",
        "test_ends_badly",
        "TestGroup::test_in_a_class",
    ]


def test_what_was_skipped_has_its_reason(row: MatrixRow) -> None:
    assert (names(row.skipped), [*row.skipped.values()]) == (["test_is_skipped"], ["the kernel lacks it"])


def test_versions_are_those_that_tests_of_this_minor_recorded(row: MatrixRow) -> None:
    assert row.versions == {"Kubernetes": "1.36.4"}


@pytest.mark.parametrize(
    ("ending", "problem"),
    [
        (KeyboardInterrupt(), INTERRUPTED),
        (subprocess.TimeoutExpired("pytest", 120), "ended after 2 minutes: the other tests were not run"),
    ],
)
def test_a_run_that_is_ended_says_what_passed_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: BaseException, problem: str
) -> None:
    wait: Callable[..., int] = subprocess.Popen.wait

    def ended(tests: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        if timeout == 120:
            wait_until("the second test has begun", (tmp_path / "begun").exists, timeout=60)
            raise ending
        return wait(tests, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", ended)
    row = minor_run(tmp_path, HANGS).row()
    assert (row.problem, row.passed, row.failed, row.is_clean) == (problem, 1, (), False)


def test_a_minor_that_does_not_build_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MinorRun, "_build", lambda _run: False)
    row = minor_run(tmp_path, TESTS).row()
    assert (row.problem, row.passed, row.versions) == (NOT_BUILT, 0, {})


def test_all_passed_and_some_failed_are_whole_runs() -> None:
    assert [bool(problem_of(status)) for status in range(6)] == [False, False, True, True, True, True]


def test_a_changed_checkout_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=test", "-c", "user.email=test@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "code.py").write_text("one")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "versions.json").write_text("{}")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    before = Checkout.now()
    (tmp_path / "docs" / "versions.json").write_text('{"rows": []}')
    assert before.is_unchanged(Checkout.now()), "the report of a minor before is no change"
    (tmp_path / "code.py").write_text("two")
    assert not before.is_unchanged(Checkout.now())
    git("commit", "-am", "second")
    assert not before.is_unchanged(Checkout.now()), "another commit is a change"


def test_outside_of_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert Checkout.now() == Checkout("", is_modified=False)


def test_a_minor_that_does_not_exist_is_refused_with_those_that_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["1.1"]) == 1
    assert "1.36" in capsys.readouterr().err


def test_chosen_tests_are_run_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def written(*_: object) -> None:
        raise AssertionError("the report was written")

    monkeypatch.setattr("matrix.__main__.save", written)
    (tests,) = minor_run(tmp_path, "def test_a(): ...").tests
    assert main(["1.36", "--processes", "0", "--tests", tests]) == 0
    assert "1.36: 1 passed, 0 failed, 0 skipped" in capsys.readouterr().out


def test_all_tests_are_there() -> None:
    assert [tests for tests in ALL_TESTS if not (ROOT / tests).exists()] == []
