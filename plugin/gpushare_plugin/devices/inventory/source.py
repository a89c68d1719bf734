"""Cards as a file on the node lists them: of any vendor."""

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.card import DeviceSource, Reading
from gpushare_plugin.devices.inventory.card_checks import CardChecks
from gpushare_plugin.devices.inventory.inventory_file import (
    MAX_BYTES,
    Inventory,
    InventoryError,
    read_inventory,
)
from gpushare_plugin.devices.use import LimitSource, UseSource
from gpushare_plugin.devices.worker import SingleCall, Worker

DEADLINE = 5.0
"""Seconds that a reading may take."""
SETTLED = 0.2
"""Seconds in which a file that has changed must not change again: it may be written in place."""
_TRIES = 5

_log = logging.getLogger(__name__)


class InventoryFamily:
    """Keeps the source of one file until another one is asked for."""

    def __init__(self) -> None:
        self._source: InventorySource | None = None

    def open(self, share_node: GPUShareNode) -> DeviceSource:
        path = Path(share_node.spec.devices.inventory_path)
        if self._source is None or self._source.path != path:
            self._source = InventorySource(path)
        return self._source

    def open_use(self) -> UseSource | None:
        return None

    def open_limits(self) -> LimitSource | None:
        return None


class _FaultError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(reason, message)


class InventoryFile:
    """The file at ``path``; what was read is kept until it changes. All calls block."""

    def __init__(self, path: Path, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._path = path
        self._sleep = sleep
        self._content: bytes | None = None
        self._read: Inventory | Problem | None = None

    def read(self) -> Inventory | Problem:
        """Returns what the file says, or why it is no inventory: not there, not safe to trust, malformed."""
        try:
            content = self._settled()
        except _FaultError as error:
            return error.problem
        if content != self._content or self._read is None:
            self._read, self._content = self._understood(content), content
        return self._read

    def _understood(self, content: bytes) -> Inventory | Problem:
        try:
            return read_inventory(content)
        except InventoryError as error:
            return Problem("InventoryInvalid", f"{self._path}: {error}")
        except Exception as error:  # neither the worker nor the process ends by what is in a file
            _log.exception("cannot read the inventory")
            return Problem("InventoryInvalid", f"{self._path}: {error!r}")

    def _settled(self) -> bytes:
        """Returns the content once it has stopped changing: in place, by a rename, or by a symbolic link."""
        content = self._now()
        for _ in range(_TRIES):
            if content == self._content:
                return content
            self._sleep(SETTLED)
            before, content = content, self._now()
            if content == before:
                return content
        raise self._fault("it changes all the time: write it beside and rename it")

    def _now(self) -> bytes:
        try:
            # Without blocking: it may be a pipe to which nobody writes.
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
            with os.fdopen(descriptor, "rb") as file:
                self._require_trusted(os.fstat(descriptor))
                return file.read(MAX_BYTES + 1)
        except FileNotFoundError as error:
            message = f"{self._path} is not on this node: put its inventory there, see docs/inventory.md"
            raise _FaultError("InventoryMissing", message) from error
        except OSError as error:
            raise self._fault(error.strerror or str(error)) from error

    def _require_trusted(self, found: os.stat_result) -> None:
        """Whoever writes the file decides what users' containers get of the node."""
        if not stat.S_ISREG(found.st_mode):
            raise self._fault("it is no file")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or found.st_uid not in (0, os.geteuid()):
            message = (
                f"{self._path} may be written by others than root, and says what containers get of the node:"
                f" run `chown root:root {self._path}; chmod 644 {self._path}` on the node"
            )
            raise _FaultError("InventoryUnsafe", message)

    def _fault(self, why: str) -> _FaultError:
        return _FaultError("InventoryUnreadable", f"{self._path} cannot be read: {why}")


class InventorySource:
    """The cards of an inventory. What was listed last stays in force while the file is no inventory.

    Neither the file nor the health command can hold up the event loop.
    """

    def __init__(self, path: Path, *, checks: CardChecks | None = None, deadline: float = DEADLINE) -> None:
        self.path = path
        self._file = InventoryFile(path)
        self._checks = checks or CardChecks()
        self._deadline = deadline
        self._call = SingleCall[Inventory | Problem](Worker("inventory"), deadline)
        self._known = Inventory(())
        self._problem = ""

    async def read(self) -> Reading:
        problem = await self._look()
        known = self._known
        await self._checks.follow(known.health, known.cards, timeout=self._deadline)
        cards = self._checks.judged(known.cards)
        return self._log_problem(Reading(cards=cards, problem=problem or self._checks.problem))

    async def _look(self) -> Problem | None:
        """Takes over what the file says now. Returns why that cannot be done."""
        read = await self._call.result(self._file.read)
        if read is None:
            message = f"reading {self.path} takes more than {self._deadline:g} s: look at the node's disks"
            return self._kept(Problem("InventoryUnreadable", message))
        if isinstance(read, Problem):
            return self._kept(read)
        self._known = read
        return None

    def _kept(self, problem: Problem) -> Problem:
        if not self._known.cards:
            return problem
        return Problem(problem.reason, f"{problem.message}; the cards that were listed last stay in force")

    def _log_problem(self, reading: Reading) -> Reading:
        message = reading.problem.message if reading.problem else ""
        if message != self._problem:
            if message:
                _log.warning("%s", message)
            else:
                _log.info("%s lists %d cards", self.path, len(reading.cards))
        self._problem = message
        return reading
