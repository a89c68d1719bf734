"""The log on a host's disk besides: a few files, rotated by size, that never stop or delay anybody."""

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
"""After which a file is rotated."""
EARLIER_FILES = 4
"""Kept beside the present one, as ``NAME.log.1`` and so on."""
WAITING_LINES = 10_000
"""For a disk that is slow; more are left out, and counted."""
RETRY_SECONDS = 60.0
"""After a write that failed."""

ENDING_SECONDS = 2.0
"""In which the last lines have to be written when the process ends."""

_log = logging.getLogger(__name__)


@contextmanager
def log_file(path: Path, *, fixed: Mapping[str, str] = NOTHING) -> Iterator[None]:
    """Also writes what is logged meanwhile to ``path``, one JSON object a line; ``fixed`` as of the log.

    A thread of its own writes: a disk that hangs holds up nobody. A folder that is missing, full or not to be
    written to is said in the log, and tried again.
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
    """Writes the last lines. What a disk that hangs does not take within ``ENDING_SECONDS`` is lost."""
    written = Event()

    def write() -> None:
        with suppress(queue.Full):
            listener.stop()
            file.close()
            written.set()

    Thread(target=write, name="end of the log file", daemon=True).start()
    if not written.wait(ENDING_SECONDS):
        file.forsake()


class _Sender(QueueHandler):
    """Leaves lines out while the queue is full."""

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
    """Raises nothing. ``clock`` is in steady seconds."""

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
        """Is called where an error is handled; the outer ``emit`` takes care of it."""
        raise

    def forsake(self) -> None:
        """Whoever writes to it may never return: ``logging`` shall not wait for that at the process's end."""
        self.stream = None
        self.createLock()

    def _reopen_if_moved(self) -> None:
        """Somebody may have removed or renamed the file: what is written to it would be lost."""
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
                "cannot write the log file %s: %s; it is tried again every %.0f s, the log itself goes on",
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
            with suppress(OSError, ValueError):  # what could not be written is lost
                stream.close()
