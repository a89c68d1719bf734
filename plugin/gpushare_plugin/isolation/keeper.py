"""Keeps the hook's files on the node: there before the kubelet is answered, gone when nobody needs them."""

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.isolation.kind import HookFacts
from gpushare_plugin.decide.isolation.needed_files import NeededFiles
from gpushare_plugin.devices.worker import Worker
from gpushare_plugin.isolation.folder import IsolationFilesError, IsolationFolder

GRACE = 30.0
"""Seconds after an answer for which its file stays although no container is known to need it. What the
kubelet has assigned is read every 10 s, and within 5 s; while the kubelet lists a container that it has not
written down yet, all files stay."""
DEADLINE = 5.0
"""Seconds that the disk may take: the kubelet waits for its answer meanwhile."""
NO_FOLDER = Problem(
    "NoFolder",
    "the plugin of this node runs without a folder for the hook's files: wait until the operator has"
    " restarted it, and see the policy's condition Ready where that takes longer than a minute",
)

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


class IsolationKeeper:
    """Make one. Its disk is asked by one thread, in turn: nothing is removed that is being answered."""

    def __init__(
        self, folder: IsolationFolder | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``folder``: None where the plugin was started without one, and the hook cannot be had. ``clock`` is
        in steady seconds."""
        self.folder = folder
        self._disk = _Disk() if folder else None
        self._files = _Files(folder, clock) if folder else None

    @property
    def path(self) -> str:
        return str(self.folder.path) if self.folder else ""

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Has what a container is about to mount on the disk. Raises ``IsolationFilesError``."""
        if self._disk is None or self._files is None:
            raise IsolationFilesError(NO_FOLDER.message)
        try:
            await self._disk.call(partial(self._files.write, files))
        except OSError as error:
            raise IsolationFilesError(
                f"the limits of the container's memory cannot be written to {self.path} of the node:"
                f" {error.strerror or error}; see that its disk works and has room, then create the pod again"
            ) from error

    async def look(self, identities: Collection[str]) -> HookFacts:
        """Returns what is there of the files of containers with these ``identities``, and puts there what
        every container with the hook needs."""
        if self._disk is None or self.folder is None:
            return HookFacts(problem=NO_FOLDER, read_problem=NO_FOLDER)
        try:
            problem = await self._disk.call(self.folder.install)
            limits = await self._disk.call(partial(self.folder.limits, identities))
            missing = await self._disk.call(self.folder.missing) if problem else ()
        except OSError as error:
            unread = f"the plugin cannot read {self.path} of this node: {error.strerror or error}"
            unreadable = Problem("FolderNotReadable", unread)
            return HookFacts(problem=unreadable, read_problem=unreadable)
        return HookFacts(problem=problem, limits=limits, missing=missing)

    async def tidy(self, needed: NeededFiles, *, in_use: bool) -> bool:
        """Removes what nobody needs; with ``in_use`` new containers get the hook, and the library stays.
        Returns whether files are on the node afterwards; where that cannot be told, that they are."""
        if self._disk is None or self._files is None:  # an earlier process may have had a folder
            return bool(needed.pods)
        try:
            return await self._disk.call(partial(self._files.tidy, needed, in_use=in_use))
        except OSError as error:
            _log.warning("cannot tidy up %s: %s", self.path, error)
            return True


class _Disk:
    """Calls of one thread, of which one may hang."""

    def __init__(self) -> None:
        self._worker = Worker("isolation files")
        self._hanging: asyncio.Future[Any] | None = None

    async def call(self, function: Callable[[], _T]) -> _T:
        """Returns what ``function`` returns, and raises what it raises. Raises ``TimeoutError``, an
        ``OSError``, where that takes too long."""
        if self._hanging is not None and not self._hanging.done():
            raise TimeoutError(errno.ETIMEDOUT, "the disk does not answer")
        running = asyncio.wrap_future(self._worker.call(partial(_outcome, function)))
        await asyncio.wait([running], timeout=DEADLINE)
        if not running.done():
            self._hanging = running
            raise TimeoutError(errno.ETIMEDOUT, "the disk does not answer")
        result, error = running.result()
        if error is not None:
            raise error
        return result  # type: ignore[return-value]


def _outcome(function: Callable[[], _T]) -> tuple[_T | None, Exception | None]:
    try:
        return function(), None
    except Exception as error:  # the thread goes on
        return None, error


@dataclass(slots=True)
class _Files:
    """Knows since when files are there. All methods block, and raise ``OSError``."""

    folder: IsolationFolder
    clock: Callable[[], float]
    _since: dict[str, float] = field(default_factory=dict, init=False)
    """Identity -> when the kubelet was last answered with it, or when its file was first seen."""

    def write(self, files: Mapping[str, bytes]) -> None:
        """Raises ``IsolationFilesError``, too."""
        for path in files:
            self._since[path.rpartition("/")[2]] = self.clock()
        self.folder.write(files)

    def tidy(self, needed: NeededFiles, *, in_use: bool) -> bool:
        """Returns whether files are on the node afterwards."""
        present = self.folder.identities()
        unneeded = self._surely_unneeded(present, needed)
        if unneeded:
            self.folder.remove(unneeded)
            _log.info("removed %d limit files that no container needs any more", len(unneeded))
        is_library_needed = in_use or present - unneeded or needed.identities or not needed.complete
        if not is_library_needed and not self.folder.is_empty:
            self.folder.remove_all()
            _log.info("removed the hook's files from %s", self.folder.path)
        return not self.folder.is_empty

    def _surely_unneeded(self, present: frozenset[str], needed: NeededFiles) -> frozenset[str]:
        now = self.clock()
        self._since = {identity: self._since.get(identity, now) for identity in present}
        if not needed.complete:
            return frozenset()
        old = {identity for identity, since in self._since.items() if now - since >= GRACE}
        return frozenset(old - needed.identities)
