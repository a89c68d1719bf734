"""The node's folder of files for isolation: the hook's library, and each container's file of limits.

Containers of any user read these files through mounts, so everybody may read them. Where SELinux is enforced,
the folder's label has to let containers read it besides. A file is replaced by ``rename`` alone: a container
that runs keeps the file that it has mounted.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.isolation.hook import LIBRARY, LIMITS_FOLDER, PRELOAD, PRELOAD_CONTENT
from gpushare_plugin.decide.isolation.limits_file import MAX_FILE

MAX_LIBRARY = 4 * 2**20
"""Bytes: the library has a hundredth of it."""
MIN_ROOM = 2**20
"""Bytes that have to be free on the disk: a file of limits has at most 64 KiB."""
_IDENTITY = re.compile("[0-9a-f]{32}")
_TEMPORARY = ".new-"
"""What names of files begin with that are being written."""


class IsolationFilesError(Exception):
    """A container cannot get its files; the text, for users, says why and what to do."""


@dataclass(frozen=True, slots=True)
class IsolationFolder:
    """``path`` is the same on the node and for this process. All methods block."""

    path: Path
    library: Path
    """Of this node's architecture, in the plugin's image."""

    def install(self) -> Problem | None:
        """Puts the library and what preloads it into the folder, where they are not there as they have to be.
        Returns why that is not possible."""
        try:
            library = self._image_library()
        except OSError as error:
            return Problem(
                "LibraryMissing",
                f"the plugin's image has no library of the hook for this node: {self.library}:"
                f" {error.strerror or error}; use an image of this version and architecture, or"
                " isolation.memory None",
            )
        try:
            self.path.mkdir(mode=0o755, parents=True, exist_ok=True)
            with _opened(self.path) as folder:
                _make_folder(LIMITS_FOLDER, folder)
                _put(LIBRARY, library, folder, mode=0o755)
                _put(PRELOAD, PRELOAD_CONTENT, folder)
                _require_room(folder)
        except OSError as error:
            return Problem(
                "FolderNotWritable",
                f"the plugin cannot write the hook's files to {self.path} of this node:"
                f" {error.strerror or error}; see that the node's disk has room and is not read-only",
            )
        return None

    def missing(self) -> tuple[str, ...]:
        """Returns the names of what containers mount that is no such file. Raises ``OSError``."""
        try:
            with _opened(self.path) as folder:
                found = {
                    LIBRARY: bool(_read(LIBRARY, folder, MAX_LIBRARY)),
                    PRELOAD: _read(PRELOAD, folder, len(PRELOAD_CONTENT)) == PRELOAD_CONTENT,
                }
        except FileNotFoundError:
            return (LIBRARY, PRELOAD)
        return tuple(name for name, is_there in found.items() if not is_there)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Writes what a container is about to mount, by path. Raises ``IsolationFilesError``, ``OSError``."""
        if problem := self.install():
            raise IsolationFilesError(f"{problem.message}; then create the pod again")
        with _opened(self.path) as folder, _opened(LIMITS_FOLDER, folder) as limits:
            for path, content in files.items():
                _put(Path(path).name, content, limits)

    def identities(self) -> frozenset[str]:
        """Returns the names of the files of limits. Raises ``OSError``."""
        try:
            with _opened(self.path) as folder, _opened(LIMITS_FOLDER, folder) as limits:
                return frozenset(name for name in _names(limits) if _IDENTITY.fullmatch(name))
        except FileNotFoundError:
            return frozenset()

    def limits(self, identities: Collection[str]) -> dict[str, bytes]:
        """Returns identity -> content of its file; what is no file of its own is left out. Raises
        ``OSError``."""
        try:
            with _opened(self.path) as folder, _opened(LIMITS_FOLDER, folder) as limits:
                found = {identity: _read(identity, limits, MAX_FILE) for identity in identities}
        except FileNotFoundError:
            return {}
        return {identity: content for identity, content in found.items() if content is not None}

    def remove(self, identities: Collection[str]) -> None:
        """Removes files of limits. Raises ``OSError``."""
        with _opened(self.path) as folder, _opened(LIMITS_FOLDER, folder) as limits:
            for identity in identities:
                _unlink(identity, limits)

    def remove_all(self) -> None:
        """Removes the library and the folder, which has no files of limits any more. Raises ``OSError``."""
        with suppress(FileNotFoundError), _opened(self.path) as folder:
            with suppress(FileNotFoundError), _opened(LIMITS_FOLDER, folder) as limits:
                for name in _names(limits):
                    if name.startswith(_TEMPORARY):
                        _unlink(name, limits)
            with suppress(OSError):  # somebody else's files stay
                os.rmdir(LIMITS_FOLDER, dir_fd=folder)
            for name in _names(folder):
                if name in (PRELOAD, LIBRARY) or name.startswith(_TEMPORARY):
                    _unlink(name, folder)
        with suppress(OSError):  # a mount of the plugin's pod: the folder stays, without anything in it
            self.path.rmdir()

    @property
    def is_empty(self) -> bool:
        """Whether no file of ours is on the node. Raises ``OSError``."""
        try:
            with _opened(self.path) as folder:
                return not {PRELOAD, LIBRARY}.intersection(_names(folder)) and not self.identities()
        except FileNotFoundError:
            return True

    def _image_library(self) -> bytes:
        with self.library.open("rb") as file:
            content = file.read(MAX_LIBRARY + 1)
        if len(content) > MAX_LIBRARY or not content:
            raise OSError(None, f"it has {len(content)} bytes or more" if content else "it is empty")
        return content


@contextmanager
def _opened(path: Path | str, folder: int | None = None) -> Iterator[int]:
    """Yields a descriptor of a folder that no symbolic link leads to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _names(folder: int) -> list[str]:
    return os.listdir(folder)


def _make_folder(name: str, folder: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, mode=0o755, dir_fd=folder)
    with _opened(name, folder) as made:  # whatever the umask was
        os.fchmod(made, 0o755)
    os.fchmod(folder, 0o755)


def _require_room(folder: int) -> None:
    """Otherwise pod after pod would come here, and be refused because its limits cannot be written."""
    disk = os.fstatvfs(folder)
    is_full = disk.f_bfree * disk.f_frsize < MIN_ROOM if disk.f_blocks else False
    if is_full or (disk.f_files and not disk.f_ffree):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _put(name: str, content: bytes, folder: int, *, mode: int = 0o644) -> None:
    """Writes a file that is on the disk, whole, when others see it; nothing where it is there already."""
    if _is_there(name, content, folder, mode):
        return
    if _is_folder(name, folder):
        _unlink(name, folder)
    written = f"{_TEMPORARY}{name}"
    _unlink(written, folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(written, flags, mode, dir_fd=folder), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(written, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        _unlink(written, folder)
        raise
    os.fsync(folder)


def _is_there(name: str, content: bytes, folder: int, mode: int) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != mode:
        return False
    return found.st_size == len(content) and _read(name, folder, len(content)) == content


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _read(name: str, folder: int, limit: int) -> bytes | None:
    """Returns up to one byte more than ``limit``; None where there is no such regular file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit + 1)


def _unlink(name: str, folder: int) -> None:
    """Where the source of a mount was missing, containerd has made a folder of its name."""
    with suppress(FileNotFoundError):
        if _is_folder(name, folder):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
