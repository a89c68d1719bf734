"""What ``simulate`` reports."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from gpushare_cli.decide.simulation.policy_change import ClassUnits, NodeChange, PolicyChange
from gpushare_cli.report import CommandReport, ExitStatus


class SimulatedCard(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod would get of one card."""

    index: int
    uuid: str
    units: int
    reason: str
    """Why this card."""


class PendingReason(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why nodes do not take a pod."""

    nodes: int
    message: str


class AskedUnits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource: str
    """Name of the extended resource."""
    units: int
    unit: str = ""
    """What one unit is on the nodes that serve it, such as ``1Gi``; several with commas."""


class SimulatedPlacement(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where one pod would land; without a node it would stay pending."""

    uid: str
    """Of the pod that waits already, or that it replaces; empty for one that does not exist."""
    namespace: str
    name: str
    workload: str
    moved_from: str
    waits_already: bool
    asked: Sequence[AskedUnits]
    node: str = ""
    cards: Sequence[SimulatedCard] = ()
    obstacles: Sequence[PendingReason] = ()
    """Why it would stay pending; the one of most nodes first."""

    @property
    def fits(self) -> bool:
        return bool(self.node)

    @property
    def reason(self) -> str:
        """Why these cards, or why none; as kube-scheduler words it."""
        if self.fits:
            return "; ".join(dict.fromkeys(card.reason for card in self.cards))
        return "; ".join(
            f"{obstacle.nodes} {obstacle.message}" if obstacle.nodes else obstacle.message
            for obstacle in self.obstacles
        )


class SimulationReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Simulation"
    placements: Sequence[SimulatedPlacement]
    """In the order in which the pods are placed."""
    nodes: int
    """That share cards, less those taken out."""
    unit: str = ""
    """Of ``--unit``."""
    unit_changes: Sequence[NodeChange] = ()
    """What ``--unit`` would do to each node."""
    without: Sequence[str] = ()
    """Nodes that are taken out."""
    policy: PolicyChange | None = None
    units_before: Sequence[ClassUnits] = ()
    """Of all cards; only with ``--policy`` and ``--unit``."""
    units_after: Sequence[ClassUnits] = ()
    units_in_the_end: Sequence[ClassUnits] = ()
    """Once the pods are gone for which nodes wait."""
    left_out: Sequence[str] = ()
    """Objects of the manifests, and pods, that are not simulated, and why."""
    remarks: Sequence[str] = ()
    """What else people have to know of the result."""
    not_considered: Sequence[str] = ()
    """What kube-scheduler looks at, and the simulation does not."""

    @property
    def fitting(self) -> int:
        return sum(placement.fits for placement in self.placements)

    @property
    def names(self) -> Sequence[str]:
        """Of the pods that fit."""
        return [f"pod/{placement.name}" for placement in self.placements if placement.fits]

    @property
    def exit_status(self) -> ExitStatus:
        is_refused = self.policy is not None and bool(self.policy.refusal)
        fits = self.fitting == len(self.placements)
        return ExitStatus.GOOD if fits and not is_refused else ExitStatus.NO

    @property
    def by_node(self) -> Counter[str]:
        return Counter(placement.node for placement in self.placements if placement.fits)
