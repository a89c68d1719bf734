"""The log on a host's disk: bounded, without secrets, and nobody's trouble when the disk is in trouble."""

import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from logging.handlers import QueueListener
from pathlib import Path
from typing import Any

import pytest

from gpushare_core.process import log_file as module
from gpushare_core.process.log_file import RETRY_SECONDS, RotatedFile, log_file


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.setLevel("INFO")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def record(message: str) -> logging.LogRecord:
    return logging.LogRecord("test", logging.INFO, __file__, 1, message, None, None)


class Full:
    """A disk without room, from ``lines`` lines on."""

    def __init__(self, handler: RotatedFile) -> None:
        self.is_full = True
        self._open = handler._open

    def open(self) -> Any:
        stream = self._open()
        write = stream.write

        def refuse(text: str) -> int:
            if self.is_full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(write(text))

        stream.write = refuse  # type: ignore[method-assign]
        return stream


def test_what_is_logged_is_in_the_file_as_in_a_pod(tmp_path: Path) -> None:
    path = tmp_path / "plugin.log"
    with log_file(path, fixed={"node": "gpu-1"}):
        logging.getLogger("gpushare_test").warning("taken %s", "so", extra={"pod": "default/a"})
        try:
            raise RuntimeError("sent Bearer s3cr3t")
        except RuntimeError:
            logging.getLogger("gpushare_test").exception("failed")
    first, second = lines(path)
    assert (first["message"], first["node"], first["pod"]) == ("taken so", "gpu-1", "default/a")
    assert "RuntimeError: sent Bearer [redacted]" in second["error"]
    assert "s3cr3t" not in path.read_text()


def test_the_other_handlers_see_records_as_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with log_file(tmp_path / "plugin.log"):
        logging.getLogger("gpushare_test").warning("taken %s", "so")
    assert caplog.messages == ["taken so"]


def test_size_and_number_of_files_are_bounded(tmp_path: Path) -> None:
    handler = RotatedFile(tmp_path / "plugin.log", file_bytes=100, earlier_files=2)
    for number in range(50):
        handler.emit(record(f"line {number:02d} of some length"))
    handler.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["plugin.log", "plugin.log.1", "plugin.log.2"]
    assert all(file.stat().st_size <= 100 for file in files)
    assert "line 49" in files[0].read_text()


@pytest.mark.parametrize("trouble", ["missing folder", "full disk"])
def test_a_disk_in_trouble_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trouble: str
) -> None:
    now = 1000.0
    folder = tmp_path / "logs"
    handler = RotatedFile(folder / "plugin.log", clock=lambda: now)
    full = Full(handler)
    if trouble == "full disk":
        folder.mkdir()
        handler._open = full.open  # type: ignore[method-assign]
    for number in range(3):
        now += RETRY_SECONDS
        handler.emit(record(f"lost {number}"))
        handler.emit(record("lost meanwhile"))
    (said,) = caplog.messages
    assert said.startswith(f"cannot write the log file {folder / 'plugin.log'}: [Errno")
    folder.mkdir(exist_ok=True)
    full.is_full = False
    now += RETRY_SECONDS
    handler.emit(record("written"))
    handler.close()
    assert (folder / "plugin.log").read_text() == "written\n"
    assert caplog.messages[1:] == [
        f"writing the log file {folder / 'plugin.log'} again: 6 lines are not in it"
    ]


def test_a_file_that_somebody_removes_or_renames_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "plugin.log"
    handler = RotatedFile(path)
    handler.emit(record("first"))
    path.rename(tmp_path / "taken-away")
    handler.emit(record("second"))
    path.unlink()
    handler.emit(record("third"))
    handler.close()
    assert path.read_text() == "third\n"
    assert (tmp_path / "taken-away").read_text() == "first\n"


def test_a_slow_disk_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WAITING_LINES", 2)
    monkeypatch.setattr(QueueListener, "start", lambda _self: None)
    monkeypatch.setattr(QueueListener, "stop", lambda _self: None)
    senders: list[Any] = []
    with log_file(tmp_path / "plugin.log"):
        senders = [handler for handler in logging.getLogger().handlers if isinstance(handler, module._Sender)]
        for number in range(5):
            logging.getLogger("gpushare_test").warning("line %d", number)
        senders[0].queue.get_nowait()
        senders[0].queue.get_nowait()
        logging.getLogger("gpushare_test").warning("goes on")
    assert "the log file's disk was too slow: 3 lines are not in it" in caplog.messages


HANGS = """
import logging, sys
from pathlib import Path
from gpushare_core.process.log_file import log_file
with log_file(Path(sys.argv[1])):
    for number in range(int(sys.argv[2])):
        logging.getLogger("gpushare_test").warning("%d", number)
"""


@pytest.mark.parametrize("count", [1, 20_000])
def test_a_disk_that_hangs_does_not_keep_the_process_from_ending(tmp_path: Path, count: int) -> None:
    path = tmp_path / "plugin.log"
    os.mkfifo(path)  # opening it hangs until somebody reads
    ended = subprocess.run(
        [sys.executable, "-c", HANGS, str(path), str(count)],
        timeout=120,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr[-1000:]
    assert "Traceback" not in ended.stderr
