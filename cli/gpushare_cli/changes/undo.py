"""Undoes policies: from the plan to the proof that nothing is left."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gpushare_cli.changes.policy_deletion import PolicyDeletion
from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.decide.undo.plan import Undoing, chosen, undo_plan
from gpushare_cli.decide.undo.proof import traces_of
from gpushare_cli.decide.undo.report import UndoOutcome, UndoPlan, UndoReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.residue import HostRoot, find_residue
from gpushare_cli.gather.undo_objects import read_undo_objects
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.wording import counted
from gpushare_core.kube.client import KubeClient

SETTLE_SECONDS = 15.0
"""For so long nothing may turn up once the policies are gone."""
FORGET_SECONDS = 20.0
"""Between two looks while kubelets forget: a look reads all pods."""
GOING = "the policies are gone; {things} left, which should go within 5 min (Ctrl-C: do not wait)"
ABSENT_SECONDS = 60.0
"""For so long an operator is waited for that is not there: it may be starting."""

Agrees = Callable[[UndoPlan], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    client: KubeClient
    progress: ProgressLine
    timeout: float
    """Seconds for all of it, from the first deletion on."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic

    async def dry_run(self, names: Sequence[str]) -> UndoReport:
        undoing = await self._undoing(names)
        return UndoReport(outcome=UndoOutcome.DRY_RUN, plan=undo_plan(undoing))

    async def run(self, names: Sequence[str], agrees: Agrees) -> UndoReport:
        """Raises ``CannotLookError``: before the first deletion, or where that is not known or refused."""
        undoing = await self._undoing(names)
        plan = undo_plan(undoing)
        if not undoing.going:
            return await self._proven(plan, UndoOutcome.NOTHING_TO_UNDO, begun=self.clock())
        if not await agrees(plan):
            return UndoReport(outcome=UndoOutcome.DECLINED, plan=plan)
        deletion = PolicyDeletion(self.client, undoing.going, self.progress.doing)
        begun = self.clock()
        try:
            wait = self.timeout if undoing.has_operator else min(self.timeout, ABSENT_SECONDS)
            return await self._carry_out(plan, deletion, begun, wait=wait)
        except asyncio.CancelledError:
            if not deletion.is_begun:
                raise
            # Of Ctrl-C: this task reports what there is instead.
            if task := asyncio.current_task():
                task.uncancel()
            return self._ended(UndoOutcome.INTERRUPTED, plan, deletion, begun)

    async def _undoing(self, names: Sequence[str]) -> Undoing:
        self.progress.doing("reading policies, nodes and what the operator has made")
        objects = await read_undo_objects(self.client)
        return Undoing(objects=objects, going=chosen(objects.policies, names))

    async def _carry_out(
        self, plan: UndoPlan, deletion: PolicyDeletion, begun: float, *, wait: float
    ) -> UndoReport:
        self.progress.doing(f"deleting {', '.join(plan.policies)}")
        await deletion.delete()
        try:
            async with asyncio.timeout(wait):
                await deletion.until_gone()
        except TimeoutError:
            return self._ended(UndoOutcome.TIMED_OUT, plan, deletion, begun)
        return await self._proven(plan, UndoOutcome.UNDONE, begun=begun)

    def _ended(
        self, outcome: UndoOutcome, plan: UndoPlan, deletion: PolicyDeletion, begun: float
    ) -> UndoReport:
        seconds = self.clock() - begun
        return UndoReport(outcome=outcome, plan=plan, waiting_for=deletion.waiting_for, seconds=seconds)

    async def _proven(self, plan: UndoPlan, outcome: UndoOutcome, *, begun: float) -> UndoReport:
        seconds = self.clock() - begun
        try:
            left = await self._residue(plan, until=begun + self.timeout)
        except CannotLookError as error:
            raise CannotLookError(
                f"the policies are gone, but it is not known whether anything is left: {error}"
            ) from error
        return UndoReport(
            outcome=outcome, plan=plan, seconds=seconds, residue=left.residue, looked=left.looked
        )

    async def _residue(self, plan: UndoPlan, *, until: float) -> ResidueReport:
        """Looks again while only such is left as goes by itself."""
        settle = min(SETTLE_SECONDS, max(0.0, until - self.clock()))
        while True:
            found = await self._look(plan, settle=settle)
            left = until - self.clock()
            if not found.residue or not all(entry.passes for entry in found.residue) or left <= 0:
                return found
            self.progress.doing(GOING.format(things=counted(len(found.residue), "thing")))
            await self.sleep(min(left, FORGET_SECONDS))
            settle = 0.0

    async def _look(self, plan: UndoPlan, *, settle: float) -> ResidueReport:
        return await find_residue(
            self.client,
            host=HostRoot(),
            settle=settle,
            progress=self.progress,
            may_have=traces_of(
                policies=plan.policies,
                nodes=plan.nodes,
                staying=plan.staying,
                with_shared=plan.shared_goes,
            ),
            sleep=self.sleep,
            clock=self.clock,
        )
