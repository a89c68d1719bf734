"""A second copy of the log in files, rotated by size, which never stop or delay the program."""

import logging
import os
import queue
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from threading import Event, Thread

from gpushare_core.process.log import NOTHING, JsonFormatter

FILE_BYTES = 10 * 2**20
"""Size at which a file is rotated."""
EARLIER_FILES = 4
"""Kept beside the current file, as ``NAME.log.1`` and so on."""
WAITING_LINES = 10_000
"""Queued for a slow disk; further lines are left out, and counted."""
RETRY_SECONDS = 60.0
"""After a failed write."""
ENDING_SECONDS = 2.0
"""For the last lines when the process ends."""

_log = logging.getLogger(__name__)


@contextmanager
def log_file(path: Path, *, fixed: Mapping[str, str] = NOTHING) -> Iterator[None]:
    """Writes what is logged to ``path`` as well, one JSON object a line; ``fixed`` as in
    ``configure_logging``.

    A thread writes, so that a disk that hangs delays nothing. A folder that is missing, full or read-only is
    logged, and tried again.
    """
    lines: queue.Queue[logging.LogRecord] = queue.Queue(WAITING_LINES)
    sender = _Sender(lines)
    sender.setFormatter(JsonFormatter(fixed))
    file = RotatedFile(path)
    listener = QueueListener(lines, file)
    listener.start()
    logging.getLogger().addHandler(sender)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(sender)
        _end(listener, file)


def _end(listener: QueueListener, file: "RotatedFile") -> None:
    """Writes the last lines; those that the disk has not taken within ``ENDING_SECONDS`` are lost."""
    written = Event()

    def write() -> None:
        with suppress(queue.Full):
            listener.stop()
            file.close()
            written.set()

    Thread(target=write, name="end of the log file", daemon=True).start()
    if not written.wait(ENDING_SECONDS):
        file.abandon()


class _Sender(QueueHandler):
    """Puts lines into the queue, and leaves them out while it is full."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]") -> None:
        super().__init__(lines)
        self._left_out = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self._left_out += 1
            return
        if left_out := self._left_out:
            self._left_out = 0
            _log.warning("the log file's disk was too slow: %d lines are not in it", left_out)


class RotatedFile(RotatingFileHandler):
    """A log file that never raises. ``clock`` is in steady seconds."""

    def __init__(
        self,
        path: Path,
        *,
        file_bytes: int = FILE_BYTES,
        earlier_files: int = EARLIER_FILES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(path, maxBytes=file_bytes, backupCount=earlier_files, delay=True, encoding="utf-8")
        self._clock = clock
        self._retry_at = float("-inf")
        self._left_out = 0

    def emit(self, record: logging.LogRecord) -> None:
        if self._clock() < self._retry_at:
            self._left_out += 1
            return
        try:
            self._reopen_if_moved()
            if self.shouldRollover(record):
                self.doRollover()
            logging.FileHandler.emit(self, record)
        except (OSError, ValueError) as error:
            self._fail(error)
        else:
            self._recover()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002 - logging's name
        """Leaves the error to ``emit``."""
        raise

    def abandon(self) -> None:
        """Gives up a write that may never return: ``logging`` must not wait for it when the process ends."""
        self.stream = None
        self.createLock()

    def _reopen_if_moved(self) -> None:
        """Opens the file again where somebody has removed or renamed it."""
        if self.stream is None:
            return
        try:
            is_same = os.path.samestat(os.fstat(self.stream.fileno()), Path(self.baseFilename).stat())
        except FileNotFoundError:
            is_same = False
        if not is_same:
            self._close_file()

    def _fail(self, error: Exception) -> None:
        self._close_file()
        self._left_out += 1
        self._retry_at = self._clock() + RETRY_SECONDS
        if self._left_out == 1:
            _log.warning(
                "cannot write the log file %s: %s; trying again every %.0f s; stderr still has all lines",
                self.baseFilename,
                error,
                RETRY_SECONDS,
            )

    def _recover(self) -> None:
        if left_out := self._left_out:
            self._left_out = 0
            _log.warning("writing the log file %s again: %d lines are not in it", self.baseFilename, left_out)

    def _close_file(self) -> None:
        stream, self.stream = self.stream, None
        if stream:
            with suppress(OSError, ValueError):
                stream.close()
