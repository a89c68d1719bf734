"""Who has which units of the node, worked out anew only where something has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpushare_plugin.decide.held.allocations import PodAllocations, allocations_of, node_locks, with_orphans
from gpushare_plugin.decide.held.assigned_devices import NodeAssignments
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import Pods
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.units.locks import NO_LOCKS, Locks
from gpushare_plugin.state import PluginState


@dataclass(slots=True)
class NodeAllocations:
    """By what the state has now."""

    state: PluginState
    _of_node: Memo[Sequence[PodAllocation]] = field(default_factory=Memo, init=False)
    _of_pods: Memo[PodAllocations] = field(default_factory=Memo, init=False)

    def assignments(self, offering: Offering) -> NodeAssignments | None:
        """None before anything was offered: then no unit can have been assigned by us."""
        layout = offering.layout or self.state.last_layout
        return self.state.assignments(layout) if layout else None

    def certain_assignments(self) -> NodeAssignments | None:
        """None also where it is not known whether IDs mean the cards that containers were told."""
        offering = self.state.offering
        return None if offering.layout_unknown else self.assignments(offering)

    def of(self, assignments: NodeAssignments | None) -> Sequence[PodAllocation]:
        """Returns the allocations of all pods, those of orphans included."""
        if assignments is None:
            return ()
        return self._of_node.value(
            (assignments, dict(self.state.pods)),
            lambda known: with_orphans(self._allocations_of(*known), *known),
        )

    def _allocations_of(self, assignments: NodeAssignments, pods: Pods) -> Sequence[PodAllocations]:
        return self._of_pods.values(
            {name: assignments.of_pod(pod) for name, pod in pods.items()},
            lambda known: allocations_of(known.pod, assignments),
        )

    def locks(self, offering: Offering) -> Locks:
        """Returns the class that each card serves alone now."""
        assignments = self.assignments(offering)
        if assignments is None or not assignments.layout.is_mixed:
            return NO_LOCKS
        return node_locks(assignments, self.state.pods, self.of(assignments))
