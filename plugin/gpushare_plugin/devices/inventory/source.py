"""Cards as a file on the node lists them: of any vendor."""

import asyncio
import logging
import os
import stat
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import Reading
from gpushare_plugin.devices.inventory.card_checks import CardChecks
from gpushare_plugin.devices.inventory.inventory_file import (
    MAX_BYTES,
    Inventory,
    InventoryError,
    read_inventory,
)
from gpushare_plugin.devices.worker import Worker

DEADLINE = 5.0
"""Seconds that a reading may take."""
SETTLED = 0.2
"""Seconds in which a file that has changed must not change again: it may be written in place."""
_TRIES = 5

_log = logging.getLogger(__name__)


class _FaultError(Exception):
    """There is no inventory to be had from the file."""

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
        """Returns what it says now, or why it is no inventory: not there, not safe to believe, malformed."""
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
        except Exception as error:  # neither the thread nor the process ends by what is in a file
            _log.exception("an inventory that cannot be read")
            return Problem("InventoryInvalid", f"{self._path}: {error!r}")

    def _settled(self) -> bytes:
        """However it was changed: in place, by a rename, or by another target of a symbolic link."""
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
            # Of a pipe nobody may ever write to the other end.
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
        """Whoever writes it decides what users' containers get of the node."""
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
    """The cards of an inventory. Make one for as long as the node's inventory is there.

    What was listed last stays in force while the file is none. Neither the file nor the health command can
    hold up the event loop.
    """

    def __init__(self, path: Path, *, checks: CardChecks | None = None, deadline: float = DEADLINE) -> None:
        self.path = path
        self._file = InventoryFile(path)
        self._checks = checks or CardChecks()
        self._deadline = deadline
        self._worker = Worker("inventory")
        self._answer: Future[Inventory | Problem] | None = None
        self._known = Inventory(())
        self._problem = ""

    async def read(self) -> Reading:
        problem = await self._look()
        known = self._known
        await self._checks.follow(known.health, known.cards, patience=self._deadline)
        cards = self._checks.judged(known.cards)
        return self._log_problem(Reading(cards=cards, problem=problem or self._checks.problem))

    async def _look(self) -> Problem | None:
        """Takes over what the file says now. Returns why that cannot be done."""
        if self._answer is None:
            self._answer = self._worker.ask(self._file.read)
            await asyncio.wait([asyncio.wrap_future(self._answer)], timeout=self._deadline)
        if not self._answer.done():
            message = f"reading {self.path} takes more than {self._deadline:g} s: look at the node's disks"
            return self._kept(Problem("InventoryUnreadable", message))
        read, self._answer = self._answer.result(), None
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
