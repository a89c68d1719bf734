"""Archives of a release: the same bytes from the same content, whoever has the files, and since when."""

import os
import tarfile
from pathlib import Path

import pytest
from release.archive import tree, write_archive

EPOCH = 1_700_000_000


def written(root: Path, archive: Path) -> bytes:
    write_archive(archive, tree(root, "."), prefix="gpushare", epoch=EPOCH)
    return archive.read_bytes()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = tmp_path / "chart"
    (root / "templates").mkdir(parents=True)
    (root / "Chart.yaml").write_text("name: gpushare\n")
    (root / "templates" / "a.yaml").write_text("a: 1\n")
    return root


def test_the_same_content_makes_the_same_bytes(files: Path, tmp_path: Path) -> None:
    first = written(files, tmp_path / "first.tgz")
    os.utime(files / "Chart.yaml", (1, 1))
    (files / "Chart.yaml").chmod(0o600)
    (files / "templates" / ".a.yaml.swp").write_text("somebody edits it\n")
    (files / "__pycache__").mkdir()
    (files / "__pycache__" / "a.pyc").write_text("")
    assert written(files, tmp_path / "second.tgz") == first


def test_other_content_makes_others(files: Path, tmp_path: Path) -> None:
    first = written(files, tmp_path / "first.tgz")
    (files / "Chart.yaml").write_text("name: another\n")
    assert written(files, tmp_path / "second.tgz") != first


def test_it_belongs_to_nobody_and_programs_can_be_run(files: Path, tmp_path: Path) -> None:
    (files / "run").write_text("#!/bin/sh\n")
    (files / "run").chmod(0o700)
    written(files, tmp_path / "a.tgz")
    with tarfile.open(tmp_path / "a.tgz") as archive:
        entries = archive.getmembers()
    assert [(entry.name, entry.mode) for entry in entries] == [
        ("gpushare/Chart.yaml", 0o644),
        ("gpushare/run", 0o755),
        ("gpushare/templates/a.yaml", 0o644),
    ]
    assert {(entry.uid, entry.gid, entry.uname, entry.mtime) for entry in entries} == {(0, 0, "", EPOCH)}


def test_single_files_are_taken_as_well(files: Path) -> None:
    assert tree(files, "Chart.yaml", "templates").keys() == {"Chart.yaml", "templates/a.yaml"}
