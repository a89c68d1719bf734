"""Files on the host, below the folder where its root is mounted; every write is atomic and durable."""

import contextlib
import errno
import fcntl
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from gpushare_hostctl.decide.run.snapshot import File
from gpushare_hostctl.errors import NeedsPersonError, RetryableError
from gpushare_hostctl.host import system_calls

_LOG = logging.getLogger(__name__)

_MAX_LINKS = 40
"""On the path of one file, as in Linux."""

_MAX_EXCHANGES = 5
"""Attempts to give back what others write meanwhile."""

_SELINUX_LABEL = "security.selinux"
_CONTAINER_FILE = b"system_u:object_r:container_file_t:s0\x00"
"""The label of files that every container may use, whatever its categories."""


class FileChangedError(RetryableError):
    """A file has changed since the decision to replace it."""


class HostFiles:
    """The host's file system, mounted at ``root``. Paths are absolute ones of the host."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> File | None:
        """Raises NeedsPersonError for what is no regular file, or may not be read."""
        try:
            # Otherwise opening a pipe waits until somebody writes into it.
            descriptor = os.open(self._resolve(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError as error:
            raise NeedsPersonError(
                f"{path} may not be read: the Job runs as root, but without the right to pass over the modes "
                "of files; make root its owner, or allow others to read it"
            ) from error
        try:
            return _read_regular(descriptor, path)
        finally:
            os.close(descriptor)

    def read_folder(self, path: str) -> dict[str, File]:
        """Returns the regular files by name; empty when there is no folder."""
        folder = self._resolve(path)
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file()) if folder.is_dir() else []
        files = {name: self.read(str(PurePosixPath(path) / name)) for name in names}
        return {name: file for name, file in files.items() if file is not None}

    def make_folder(self, path: str, *, mode: int = 0o700, gid: int | None = None) -> None:
        """Makes a folder, or gives mode and group to one that is there: somebody else may have made it."""
        folder = self._resolve(path)
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
            _sync_folder(folder.parent)
        status = folder.stat()
        if gid is not None and status.st_gid != gid:
            os.chown(folder, -1, gid)
        if stat.S_IMODE(status.st_mode) != mode:
            folder.chmod(mode)

    def share_with_containers(self, path: str) -> None:
        """Where SELinux is on, lets confined containers read what is made in a folder."""
        folder = self._resolve(path)
        with contextlib.suppress(OSError):
            if os.getxattr(folder, _SELINUX_LABEL) != _CONTAINER_FILE:
                os.setxattr(folder, _SELINUX_LABEL, _CONTAINER_FILE)

    def write(self, path: str, file: File, *, through: str) -> None:
        """Replaces a file in one step: written in the folder ``through``, then renamed.

        After a crash there is either the old content or the new one, and nothing else beside it.
        Raises NeedsPersonError when the two folders are not on one file system.
        """
        staged = str(PurePosixPath(through) / f"{PurePosixPath(path).name}.new")
        self.stage(staged, file, like=path)
        try:
            self.move(staged, path)
        except NeedsPersonError:
            self.remove(staged)
            raise

    def stage(self, path: str, file: File, *, like: str) -> None:
        """Writes a file that later takes the place of ``like``, with the labels of that one."""
        staged = self._resolve(path)
        _write_durably(staged, file, like=self._resolve(like))
        _sync_folder(staged.parent)

    def move(self, staged: str, path: str) -> None:
        """Renames a staged file; no new byte is written. Raises as ``write``."""
        source, target = self._resolve(staged), self._resolve(path)
        with _explaining(staged, path):
            source.replace(target)
        _sync_folder(target.parent)
        _sync_folder(source.parent)

    def replace(self, staged: str, path: str, *, expected: bytes) -> None:
        """Puts a staged file in the place of one with exactly the content ``expected``.

        The two are exchanged, and what came out is compared: what somebody else writes at that moment goes
        back, and is not lost. Where the file system cannot exchange files, the content is compared
        immediately before the rename. Raises FileChangedError for another content, and as ``move``.
        """
        self.require(path, expected)
        put = self.read(staged)
        if put is None or not self._exchange(staged, path):
            _LOG.warning("this file system cannot exchange two files; compared %s, now renaming", path)
            self.move(staged, path)
            return
        came_out = self.read(staged)
        if came_out is None or came_out.content != expected:
            self.give_back(staged, path, put=put.content)
            raise _changed(path)
        self.remove(staged)

    def give_back(self, staged: str, path: str, *, put: bytes) -> None:
        """Puts back what came out for ``put``; what others have written there since is newer and stays."""
        for _ in range(_MAX_EXCHANGES):
            newest = self.read(staged)
            if newest is None or self.read(path) is None or not self._exchange(staged, path):
                break
            came_out = self.read(staged)
            if came_out is None or came_out.content == put:
                break
            put = newest.content
        self.remove(staged)

    def _exchange(self, staged: str, path: str) -> bool:
        """Returns whether that is supported here."""
        source, target = self._resolve(staged), self._resolve(path)
        try:
            # In this order the kubelet sees the manifest go and come. In the other order it would see it come
            # and go, and end the pod until it lists the folder again.
            with _explaining(staged, path):
                supported = system_calls.exchange(target, source)
        except FileNotFoundError as error:
            raise _changed(path) from error
        _sync_folder(target.parent)
        _sync_folder(source.parent)
        return supported

    def require(self, path: str, expected: bytes) -> None:
        """Raises FileChangedError unless the file is there with exactly that content."""
        file = self.read(path)
        if file is None or file.content != expected:
            raise _changed(path)

    @contextlib.contextmanager
    def watch_reads(self, path: str) -> Iterator[Callable[[], bool] | None]:
        """Yields whether the file has been read since; None where that cannot be noticed."""
        try:
            watch = system_calls.ReadWatch(self._resolve(path))
        except OSError as error:
            _LOG.warning("cannot notice who reads %s: %s", path, error.strerror)
            yield None
            return
        try:
            yield watch.was_read
        finally:
            watch.close()

    def remove(self, path: str) -> None:
        """Of a link only the link."""
        place = PurePosixPath(path)
        (self._resolve(str(place.parent)) / place.name).unlink(missing_ok=True)

    def names(self, path: str) -> list[str]:
        """Returns everything in a folder, in order; none when there is no folder."""
        folder = self._resolve(path)
        return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []

    def remove_empty_folder(self, path: str) -> None:
        """Removes a folder unless something is in it."""
        folder = self._resolve(path)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not any(folder.iterdir()):
                folder.rmdir()
                _sync_folder(folder.parent)

    @contextlib.contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        """Keeps other runs of this program off the host.

        The lock is on the folder itself and ends with the process, so that nothing of it is left. Raises
        RetryableError while another run has it, NeedsPersonError when there is no such folder.
        """
        descriptor = os.open(self._existing_folder(folder), os.O_RDONLY | os.O_DIRECTORY)
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _existing_folder(self, folder: str) -> Path:
        path = self._resolve(folder)
        if not path.is_dir():
            raise NeedsPersonError(f"there is no folder {folder} below {self._root}; mount the host's there")
        return path

    def _resolve(self, path: str) -> Path:
        """Follows links as the host does: an absolute one begins at the host's root.

        Raises NeedsPersonError for a circle of links.
        """
        remaining = list(PurePosixPath(path).parts[1:])
        resolved = PurePosixPath()
        links = 0
        while remaining:
            step = remaining.pop(0)
            place = self._root / resolved / step
            if step != ".." and place.is_symlink():
                links += 1
                resolved, remaining = _follow(place, resolved=resolved, remaining=remaining)
            else:
                resolved = resolved.parent if step == ".." else resolved / step
            if links > _MAX_LINKS:
                raise NeedsPersonError(f"too many links on the way to {path}; name the file itself")
        return self._root / resolved


def _read_regular(descriptor: int, path: str) -> File:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NeedsPersonError(f"{path} is not a regular file; name a file, or make it one")
    with os.fdopen(descriptor, "rb", closefd=False) as stream:
        mode = stat.S_IMODE(status.st_mode)
        return File(content=stream.read(), mode=mode, uid=status.st_uid, gid=status.st_gid)


@contextlib.contextmanager
def _explaining(staged: str, path: str) -> Iterator[None]:
    """Says what to do about a rename that fails, except for a missing file."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NeedsPersonError(
            f"cannot move {staged} to {path}: {error.strerror}; both have to be on one file system, and "
            "writable (see --folder)"
        ) from error


def _changed(path: str) -> FileChangedError:
    return FileChangedError(f"{path} was changed by somebody else in the meantime")


def is_full(error: OSError) -> bool:
    """Whether the disk takes no new byte."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _follow(link: Path, *, resolved: PurePosixPath, remaining: list[str]) -> tuple[PurePosixPath, list[str]]:
    target = PurePosixPath(link.readlink())
    if target.is_absolute():
        return PurePosixPath(), [*target.parts[1:], *remaining]
    return resolved, [*target.parts, *remaining]


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RetryableError("another gpushare-hostctl is at work on this node; run again later") from error


def _write_durably(path: Path, file: File, *, like: Path) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as stream:  # noqa: PTH123
        stream.write(file.content)
        stream.flush()
        _set_owner(descriptor, file)
        os.fchmod(descriptor, file.mode)
        _copy_labels(descriptor, like)
        os.fsync(descriptor)


def _set_owner(descriptor: int, file: File) -> None:
    status = os.fstat(descriptor)
    # Asked for only when needed: it takes a capability that the program otherwise does without.
    if (status.st_uid, status.st_gid) != (file.uid, file.gid):
        os.fchown(descriptor, file.uid, file.gid)


def _copy_labels(descriptor: int, like: Path) -> None:
    """SELinux label, access lists."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(like):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(like, name))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
