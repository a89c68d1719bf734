"""The folder that the extender keeps its log in: given to its group, and never taken from anybody."""

import logging
import os
from pathlib import Path

import pytest

from gpushare_hostctl.log_folder import prepare

GROUP = 65532

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to another group")


def test_an_empty_folder_becomes_the_groups(tmp_path: Path) -> None:
    prepare(tmp_path, group=GROUP)
    assert (tmp_path.stat().st_gid, tmp_path.stat().st_mode & 0o7777) == (GROUP, 0o770)


def test_one_that_is_the_groups_already_stays_so_with_its_files(tmp_path: Path) -> None:
    prepare(tmp_path, group=GROUP)
    (tmp_path / "gpushare-extender.log").write_text("before")
    prepare(tmp_path, group=GROUP)
    assert tmp_path.stat().st_gid == GROUP
    assert (tmp_path / "gpushare-extender.log").read_text() == "before"


def test_a_folder_with_files_of_others_is_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "syslog").touch()
    before = tmp_path.stat()
    with caplog.at_level(logging.ERROR):
        prepare(tmp_path, group=GROUP)
    assert (tmp_path.stat().st_gid, tmp_path.stat().st_mode) == (before.st_gid, before.st_mode)
    assert "holds files of others" in caplog.text


def test_a_folder_that_is_not_there_is_said_and_keeps_nobody_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        prepare(tmp_path / "none", group=GROUP)
    assert "cannot be prepared" in caplog.text
