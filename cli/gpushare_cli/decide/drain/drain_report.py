"""What ``drain-card`` plans and reports."""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from gpushare_cli.decide.drain.cordon_report import CardCordon
from gpushare_cli.decide.simulation.simulation_report import SimulatedPlacement
from gpushare_cli.report import CommandReport, ExitStatus


class DrainAction(StrEnum):
    """What becomes of a pod that has units of the card."""

    EVICT = "Evict"
    ENDING = "Ending"
    """It is being deleted already."""
    STAYS = "Stays"
    """It belongs to its node, as a static pod or one of a DaemonSet."""
    NEEDS_FORCE = "NeedsForce"
    """No controller makes it anew: it is evicted with ``--force`` alone."""
    UNKNOWN = "Unknown"
    """The API server does not have it, and its kubelet keeps its units."""
    CAME = "Came"
    """It came after the plan was shown: nobody has agreed to its eviction."""


class DrainedPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    uid: str
    units: int
    """Of the cards that are drained."""
    controller: str
    """Kind and name; empty where there is none."""
    action: DrainAction
    has_local_data: bool = False
    """Whether it has volumes that are lost with it."""
    replacement: SimulatedPlacement | None = None
    """Where the pod would land that is made in its place, by a simulation; None where none is made."""
    budget: str = ""
    """The PodDisruptionBudget that does not let it go at present."""
    is_evicted: bool = False
    is_gone: bool = False
    """Whether it has no units of the cards any more."""
    problem: str = ""
    """Why the API server refused the last try to evict it."""

    is_refused: bool = False
    """Whether ``problem`` is for good: it is not tried again."""

    @property
    def key(self) -> tuple[str, str, str]:
        """As that of a ``CardTenant``."""
        return self.namespace, self.name, self.uid

    @property
    def may_go(self) -> bool:
        """Whether it is worth while to wait for it."""
        leaves = self.action in (DrainAction.EVICT, DrainAction.ENDING)
        return leaves and not (self.is_gone or self.is_refused)

    @property
    def text(self) -> str:
        return f"{self.namespace}/{self.name}"


class DrainOutcome(StrEnum):
    DRY_RUN = "DryRun"
    DECLINED = "Declined"
    """The person said no: nothing was changed."""
    REFUSED = "Refused"
    """A pod has no controller, and ``--force`` was not given: nothing was changed."""
    DRAINED = "Drained"
    INCOMPLETE = "Incomplete"
    """Something stays on the card."""
    INTERRUPTED = "Interrupted"


class DrainReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "CardDrain"
    node: str
    outcome: DrainOutcome
    cards: Sequence[CardCordon]
    pods: Sequence[DrainedPod]
    seconds: float = 0.0
    problem: str = ""
    """What was in the way of all of it, such as a plugin or an API server that is away."""
    not_considered: Sequence[str] = ()
    """By the simulation of replacements."""

    @property
    def names(self) -> Sequence[str]:
        return [f"pod/{pod.name}" for pod in self.pods]

    @property
    def staying(self) -> list[DrainedPod]:
        return [pod for pod in self.pods if not pod.is_gone]

    @property
    def exit_status(self) -> ExitStatus:
        if self.outcome is DrainOutcome.INTERRUPTED:
            return ExitStatus.INTERRUPTED
        if self.outcome is DrainOutcome.DRY_RUN:
            can_go = (DrainAction.EVICT, DrainAction.ENDING)
            return ExitStatus.GOOD if all(pod.action in can_go for pod in self.pods) else ExitStatus.NO
        return ExitStatus.GOOD if self.outcome is DrainOutcome.DRAINED else ExitStatus.NO
