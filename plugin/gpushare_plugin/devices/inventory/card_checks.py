"""Which cards of an inventory are well, by its health command."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.card import PhysicalCard
from gpushare_plugin.devices.inventory.health_command import HealthAnswer, ask_health
from gpushare_plugin.devices.inventory.inventory_file import HealthCommand
from gpushare_plugin.devices.worker import Worker

CONCURRENT_CHECKS = 4
SOON = 1.0
"""Seconds that a round of the plugin waits for answers; later ones count in the next round."""
REWORDED = 600
"""Seconds for which the words about a sick card stay: some programs write the time or a temperature, and
each change would cost a write of the status."""
GRACE = 5.0
"""Seconds in which a program that was killed has to be gone."""
NOT_YET = HealthAnswer("its health command has not answered yet")
STUCK = HealthAnswer("its health command did not end although it was killed: look at the card's driver")


@dataclass(slots=True)
class _Check:
    """The last check of one card, and its answer."""

    running: "asyncio.Future[HealthAnswer]"
    """The same one until the call returns: a call that hangs would keep every future made for it."""
    begun: float | None = None
    """When the program was started; None while it waits for its turn."""
    answer: HealthAnswer = NOT_YET
    unusable: str = ""
    asked: float = 0.0
    answered: float = 0.0


@dataclass(slots=True)
class CardChecks:
    """Checks each card once in the command's period; an answer holds until the next one."""

    ask: Callable[[Sequence[str], float], HealthAnswer] = ask_health
    now: Callable[[], float] = time.monotonic
    """Steady seconds."""
    _worker: Worker | None = None
    _command: HealthCommand | None = None
    _checks: dict[str, _Check] = field(default_factory=dict)
    """By card UUID."""

    async def follow(
        self, command: HealthCommand | None, cards: Sequence[PhysicalCard], *, timeout: float
    ) -> None:
        """Checks the ``cards`` that are due, and takes the answers that come soon.

        ``timeout``: seconds to wait for cards that have had no answer yet.
        """
        if command != self._command:
            self._command, self._checks = command, {}
        present = {card.uuid for card in cards}
        self._checks = {uuid: check for uuid, check in self._checks.items() if uuid in present}
        self._collect()
        for card in cards:
            if command and self._is_due(card.uuid, command):
                self._begin(card, command)
        running = [check for check in self._checks.values() if not check.running.done()]
        if running:
            is_first = any(check.answer is NOT_YET for check in running)
            await asyncio.wait(
                [check.running for check in running], timeout=timeout if is_first else min(timeout, SOON)
            )
        self._collect()

    def _collect(self) -> None:
        for check in self._checks.values():
            _take_answer(check, self.now())

    def _is_due(self, uuid: str, command: HealthCommand) -> bool:
        check = self._checks.get(uuid)
        return check is None or (check.running.done() and self.now() - check.asked >= command.period)

    def _begin(self, card: PhysicalCard, command: HealthCommand) -> None:
        before = self._checks.get(card.uuid) or _Check(asyncio.get_running_loop().create_future())
        check = replace(before, begun=None, asked=self.now())

        def run() -> HealthAnswer:
            check.begun = self.now()
            return self.ask(command.for_card(card), command.timeout)

        self._worker = self._worker or Worker("health command", threads=CONCURRENT_CHECKS)
        check.running = asyncio.wrap_future(self._worker.call(run))
        self._checks[card.uuid] = check

    def judged(self, cards: Sequence[PhysicalCard]) -> tuple[PhysicalCard, ...]:
        """Returns the ``cards`` with the health that their last answers give them."""
        return tuple(self._judged(card) for card in cards)

    def _judged(self, card: PhysicalCard) -> PhysicalCard:
        check, command = self._checks.get(card.uuid), self._command
        if check is None or command is None:
            return card
        is_stuck = not check.running.done() and check.begun is not None
        if is_stuck and self.now() - (check.begun or 0.0) > command.timeout + GRACE:
            return replace(card, healthy=False, reason=STUCK.problem)
        problem = check.answer.problem
        if check.answer is NOT_YET:
            return replace(card, healthy=False, reason=problem, unproven=True)
        return replace(card, healthy=False, reason=problem) if problem else card

    @property
    def problem(self) -> Problem | None:
        """Why the command cannot be run; the cards keep their last answers."""
        unusable = next((check.unusable for check in self._checks.values() if check.unusable), "")
        if not unusable:
            return None
        return Problem(
            "HealthCommandUnusable",
            f"the inventory's health command cannot be run in the plugin's pod: {unusable}; see"
            " docs/inventory.md for what it finds there",
        )


def _take_answer(check: _Check, now: float) -> None:
    """The earlier answer stays where the program cannot be run, and for a while where only words differ."""
    if not check.running.done():
        return
    before, answer = check.answer, check.running.result()
    check.unusable = answer.unusable
    if before is not NOT_YET:
        is_reworded = bool(before.problem and answer.problem) and now - check.answered < REWORDED
        if answer.unusable or is_reworded:
            return
    check.answer, check.answered = HealthAnswer(answer.problem), now
