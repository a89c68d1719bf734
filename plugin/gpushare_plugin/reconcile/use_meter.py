"""Measures what is in use, and keeps what was measured last."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gpushare_core.api.enums import MeasurementScope
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.cluster.container_names import ContainerNames
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.isolation.driver_cgroups import with_driver_use
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.use.container_use import (
    ContainerShare,
    MeasuredUse,
    exceeding,
    loads,
    measured_use,
    unnamed_owners,
)
from gpushare_plugin.devices.use import Use, UseQuestion, UseSource
from gpushare_plugin.state import PluginState

EXCESS_ENDS_AFTER = 600.0
"""Seconds without an excess after which it is over, because it may come and go."""
MAX_WARNINGS = 100
"""That are remembered as logged."""

NOT_MEASURABLE = Problem(
    "UseNotTold",
    "the source of devices does not tell what is in use: sources NVML and Simulated do",
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class UseMeter:
    """Keeps ``state.measured``, as often as the policy says."""

    state: PluginState
    names: ContainerNames
    open_use: Callable[[GPUShareNode], UseSource | None]
    clock: Callable[[], float] = time.monotonic
    _exceeded: dict[ContainerShare, float] = field(default_factory=dict, init=False)
    """When the share was exceeded last."""
    _logged: dict[str, None] = field(default_factory=dict, init=False)

    async def measure(self, layout: Layout | None, allocations: Sequence[PodAllocation]) -> None:
        """Measures what the holders of ``allocations`` use.

        Where nothing is to be measured, nothing counts as in use. Where the use cannot be known, the status
        keeps what it says of cards.
        """
        state, share_node = self.state, self.state.share_node
        if share_node is None or layout is None or state.reading is None:
            state.measured = None
            return
        question = self._question(share_node, allocations)
        if question is None:
            state.measured = MeasuredUse(cards={placed.uuid: 0 for placed in layout.cards})
            return
        source = self.open_use(share_node)
        if source is None:
            state.measured = MeasuredUse(problem=NOT_MEASURABLE)
            return
        use = await source.measure(question)
        self._log(use)
        if not question.by_container:
            state.measured = MeasuredUse(cards=use.cards, problem=use.problem)
            return
        self.names.forget({allocation.pod.kubelet_uid for allocation in allocations})
        if unnamed := unnamed_owners(use, layout, allocations, self.names.known):
            await self.names.look_up(unnamed)
        measured = measured_use(use, layout, allocations, self.names.known)
        measured = with_driver_use(measured, state.driver_use)
        now = self.clock()
        self._exceeded.update(dict.fromkeys(exceeding(measured.containers, measured.requested), now))
        self._exceeded = {key: seen for key, seen in self._exceeded.items() if now - seen < EXCESS_ENDS_AFTER}
        state.measured = replace(measured, exceeded_lately=frozenset(self._exceeded))

    def _question(self, share_node: GPUShareNode, allocations: Sequence[PodAllocation]) -> UseQuestion | None:
        measurement, reading = share_node.spec.measurement, self.state.reading
        if measurement.scope is MeasurementScope.OFF or reading is None:
            return None
        return UseQuestion(
            cards=reading.cards,
            by_container=measurement.scope is MeasurementScope.CONTAINERS,
            interval=measurement.interval_seconds,
            loads=loads(allocations),
        )

    def _log(self, use: Use) -> None:
        for warning in use.warnings:
            if warning not in self._logged:
                _log.warning(warning)
                self._logged[warning] = None
        while len(self._logged) > MAX_WARNINGS:
            del self._logged[next(iter(self._logged))]
