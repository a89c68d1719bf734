"""Keeps the hook's files on the node: there before the kubelet is answered, gone when nobody needs them."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.isolation.kind import HookFacts
from gpushare_plugin.decide.isolation.needed_files import NeededFiles
from gpushare_plugin.isolation.folder import IsolationFilesError, IsolationFolder

GRACE = 120.0
"""Seconds for which a file stays that no container is known to need. A kubelet that has its answer writes the
checkpoint when the other resources of the container are allocated, too."""
SETTLED_AFTER = 10.0
"""Seconds after an answer until the kubelet's books are surely not those of the units' former holder."""
NO_FOLDER = Problem(
    "NoFolder",
    "the plugin of this node runs without a folder for the hook's files: wait until the operator has started"
    " it anew, and see the policy's condition Ready where that takes longer than a minute",
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class IsolationKeeper:
    """``folder``: None where the plugin was started without one, and Hook cannot be had."""

    folder: IsolationFolder | None = None
    clock: Callable[[], float] = time.monotonic
    """Steady seconds."""
    _since: dict[str, float] = field(default_factory=dict, init=False)
    """Identity -> when the kubelet was last answered with it, or when its file was first seen."""
    _seen: frozenset[str] = field(default=frozenset(), init=False)
    """Identities that the kubelet has had a container with since then."""
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def install(self) -> Problem | None:
        """Returns why containers cannot get the hook."""
        if self.folder is None:
            return NO_FOLDER
        async with self._one:
            return await asyncio.to_thread(self.folder.install)

    async def write(self, files: Mapping[str, bytes]) -> None:
        """Has what a container is about to mount on the disk. Raises ``IsolationFilesError``."""
        if not files:
            return
        if self.folder is None:
            raise IsolationFilesError(NO_FOLDER.message)
        async with self._one:
            for path in files:
                identity = path.rpartition("/")[2]
                self._seen -= {identity}
                self._since[identity] = self.clock()
            await asyncio.to_thread(self.folder.write, files)

    async def look(self, identities: Collection[str]) -> HookFacts:
        """Returns what is there of the files of containers with these ``identities``, and puts there what
        every container with the hook needs."""
        if self.folder is None:
            return HookFacts(problem=NO_FOLDER, read_problem=NO_FOLDER)
        problem = await self.install()
        try:
            limits = await asyncio.to_thread(self.folder.limits, identities)
        except OSError as error:
            unread = f"the plugin cannot read {self.folder.path} of this node: {error.strerror or error}"
            return HookFacts(problem=problem, read_problem=Problem("FolderUnreadable", unread))
        return HookFacts(problem=problem, limits=limits)

    @property
    def path(self) -> str:
        return str(self.folder.path) if self.folder else ""

    async def tidy(self, needed: NeededFiles, *, in_use: bool) -> bool:
        """Removes what nobody needs; with ``in_use`` new containers get the hook, and the library stays.
        Returns whether files are on the node afterwards; where that cannot be told, that they are."""
        if self.folder is None:
            return False
        async with self._one:
            try:
                return await asyncio.to_thread(self._tidy, self.folder, needed, in_use)
            except OSError as error:
                _log.warning("cannot tidy up %s: %s", self.folder.path, error)
                return True

    def _tidy(self, folder: IsolationFolder, needed: NeededFiles, in_use: bool) -> bool:  # noqa: FBT001  of one caller
        present = folder.identities()
        unneeded = self._surely_unneeded(present, needed)
        if unneeded:
            folder.remove(unneeded)
            _log.info("removed %d files of limits that no container needs any more", len(unneeded))
        is_library_needed = in_use or present - unneeded or needed.identities or not needed.complete
        if not is_library_needed and not folder.is_empty:
            folder.remove_all()
            _log.info("removed the hook's files from %s", folder.path)
        return not folder.is_empty

    def _surely_unneeded(self, present: frozenset[str], needed: NeededFiles) -> frozenset[str]:
        """Returns the files whose containers have ended, and those that nobody has needed for long enough."""
        now = self.clock()
        self._since = {identity: self._since.get(identity, now) for identity in present}
        settled = {identity for identity, since in self._since.items() if now - since >= SETTLED_AFTER}
        self._seen = (self._seen & present) | (needed.identities & settled)
        if not needed.complete:
            return frozenset()
        old = {identity for identity, since in self._since.items() if now - since >= GRACE}
        return frozenset((old | self._seen) - needed.identities)
