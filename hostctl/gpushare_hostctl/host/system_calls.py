"""Calls of Linux that Python's library lacks: exchanging two files, and noticing that a file is read."""

import contextlib
import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_IN_ACCESS = 1
_EVENT_BYTES = 4096

_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of a kernel or file system that cannot exchange files: both stay as they are."""


def exchange(first: Path, second: Path) -> bool:
    """Exchanges two files of one file system in one step (``renameat2``); False where that is unsupported.

    A watcher of the folder of ``first`` sees its file go away and come back, in this order. Raises OSError.
    """
    try:
        _call("renameat2", _AT_FDCWD, bytes(first), _AT_FDCWD, bytes(second), _RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True


class ReadWatch:
    """Notices that one file is read, by whatever process and through whatever mount (``inotify``).

    Raises OSError where the file cannot be watched.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._was_read = False
        try:
            _call("inotify_add_watch", self._descriptor, bytes(path), _IN_ACCESS)
        except OSError:
            self.close()
            raise

    def was_read(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._was_read = bool(os.read(self._descriptor, _EVENT_BYTES)) or self._was_read
        return self._was_read

    def close(self) -> None:
        os.close(self._descriptor)


def _call(name: str, *arguments: Any) -> int:
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None:
        raise OSError(errno.ENOSYS, f"the C library has no {name}")
    result = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
