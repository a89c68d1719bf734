"""What ``undo`` will do, has done, and has left."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from gpushare_cli.decide.residue import ResidueEntry
from gpushare_cli.report import CommandReport, ExitStatus


class UndoOutcome(StrEnum):
    DRY_RUN = "DryRun"
    """Nothing was changed."""
    DECLINED = "Declined"
    """A person said no. Nothing was changed."""
    NOTHING_TO_UNDO = "NothingToUndo"
    """There was no policy."""
    UNDONE = "Undone"
    TIMED_OUT = "TimedOut"
    """Policies are still there; the operator goes on."""
    INTERRUPTED = "Interrupted"
    """A person ended the waiting; the operator goes on."""


class UndoStep(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """As the operator calls it."""
    says: str
    """What is done, for people; ``{objects}`` stands for the names."""
    objects: Sequence[str]
    """What it is done to: nodes by name, other objects as ``namespace/name``."""


class HeldPod(msgspec.Struct, frozen=True, kw_only=True):
    """It keeps running, on the cards that it has."""

    namespace: str
    name: str
    node: str


class UndoWarning(msgspec.Struct, frozen=True, kw_only=True):
    says: str
    command: str = ""
    """What to type; empty where there is nothing to do."""


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    policies: Sequence[str]
    """Those that go."""
    staying: Sequence[str]
    """Policies that stay."""
    needed_backend: str | None
    """The scheduler backend that policies which stay need: it stays connected."""
    shared_goes: bool
    """Whether what all policies share goes as well: the extender, and what was done to schedulers."""
    nodes: Sequence[str]
    steps: Sequence[UndoStep]
    """In their order. Each begins when the one before is done."""
    warnings: Sequence[UndoWarning]
    """What will be in the way."""
    pods: Sequence[HeldPod]
    """With units on these nodes."""
    nodes_with_files: Sequence[str] = ()
    """Nodes on which isolation files stay: a policy says so, or nobody can remove them there now."""


class UndoReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "UndoReport"
    outcome: UndoOutcome
    plan: UndoPlan
    waiting_for: Mapping[str, str] = {}
    """Policy that is still there -> what its condition Ready says."""
    seconds: float = 0.0
    """How long it took until the policies were gone, or until it ended."""
    residue: Sequence[ResidueEntry] | None = None
    """What is left; None where nobody looked."""
    looked: Sequence[str] = ()
    """What was looked at."""

    @property
    def names(self) -> Sequence[str]:
        return [f"gpusharepolicy.gpushare.io/{name}" for name in self.plan.policies]

    @property
    def exit_status(self) -> ExitStatus:
        if self.outcome is UndoOutcome.INTERRUPTED:
            return ExitStatus.INTERRUPTED
        is_no = self.outcome in (UndoOutcome.DECLINED, UndoOutcome.TIMED_OUT) or bool(self.residue)
        return ExitStatus.NO if is_no else ExitStatus.GOOD
