"""Images that have programs of their own: those of a version of Kubernetes, and the scheduler's."""

from pathlib import Path

import pytest

from gpushare_localcluster import cli, scheduler
from gpushare_localcluster.build.binary import SCHEDULER, Binary, GoProgram
from gpushare_localcluster.build.minors import CHOICE, DEFAULT, MINORS, Minor, minor_named
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.images import ImagePrograms
from gpushare_localcluster.scheduler import add_scheduler


def targets(folder: Path) -> dict[str, str]:
    return {link.name: str(link.readlink()) for link in folder.iterdir()}


def test_a_tag_names_a_folder_of_programs_the_last_one_that_was_said(tmp_path: Path) -> None:
    images = ImagePrograms(tmp_path / "programs")
    images.add("v1.36.3", Path("/cache/1.36"))
    images.add("v1.37.2", Path("/cache/older"))
    images.add("v1.37.2", Path("/cache/1.37"))
    assert targets(tmp_path / "programs") == {"v1.36.3": "/cache/1.36", "v1.37.2": "/cache/1.37"}


def test_a_cluster_that_is_started_anew_begins_without_any(tmp_path: Path) -> None:
    images = ImagePrograms(tmp_path / "programs")
    images.clear()
    images.add("v1.37.2", Path("/cache/1.37"))
    images.clear()
    images.add("v1.36.3", Path("/cache/1.36"))
    assert targets(tmp_path / "programs") == {"v1.36.3": "/cache/1.36"}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The minors that the scheduler is built of; nothing is compiled."""
    minors: list[str] = []

    def ensure(program: GoProgram, minor: Minor, **_: object) -> Binary:
        assert program is SCHEDULER
        minors.append(minor.name)
        folder = Path(f"/cache/scheduler/{minor.name}")
        return Binary(path=folder / program.name, programs=folder, minor=minor)

    monkeypatch.setattr(scheduler, "ensure_program", ensure)
    monkeypatch.setattr(cli, "ensure_program", ensure)
    return minors


@pytest.fixture
def cluster(tmp_path: Path) -> LocalCluster:
    (tmp_path / "config.json").write_text('{"kubernetes": "1.36"}')
    return LocalCluster(tmp_path)


def test_a_cluster_gets_the_scheduler_of_its_minor(built: list[str], cluster: LocalCluster) -> None:
    add_scheduler(cluster, "0.1.0")
    assert targets(cluster.directory / "programs") == {"0.1.0-1.36": "/cache/scheduler/1.36"}
    assert built == ["1.36"]


def test_before_an_upgrade_it_gets_the_next_ones_beside_it(built: list[str], cluster: LocalCluster) -> None:
    add_scheduler(cluster, "0.1.0")
    add_scheduler(cluster, "0.1.0", minor=minor_named("1.37"))
    assert set(targets(cluster.directory / "programs")) == {"0.1.0-1.36", "0.1.0-1.37"}
    assert built == ["1.36", "1.37"]


def test_of_a_minor_without_a_scheduler_it_gets_none(built: list[str], cluster: LocalCluster) -> None:
    add_scheduler(cluster, "0.1.0", minor=MINORS[0])
    assert built == []
    assert not (cluster.directory / "programs").exists()


def test_the_command_builds_it_and_says_where_it_is(
    built: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["build", "--ignore-preflight-errors", "--scheduler"]) == 0
    assert capsys.readouterr().out == f"/cache/scheduler/{DEFAULT.name}/gpushare-scheduler\n"
    assert built == [DEFAULT.name]


def test_what_make_test_builds_of_a_minor_without_one_is_nothing(
    built: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHOICE, MINORS[0].name)
    assert cli.main(["build", "--ignore-preflight-errors", "--scheduler"]) == 0
    said = capsys.readouterr()
    assert (said.out, built) == ("", [])
    assert f"there is none of Kubernetes {MINORS[0].name}" in said.err
