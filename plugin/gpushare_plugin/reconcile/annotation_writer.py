"""Writes repaired annotations, and says of which pods they could not be written."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.held.assigned_devices import NodeAssignments
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import read_metadata
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.report.annotation_repairs import (
    Repair,
    RepairPlanner,
    full_pod_events,
    other_card_events,
)
from gpushare_plugin.state import PluginState

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class AnnotationWriter:
    """What is written goes into ``state`` at once."""

    state: PluginState
    client: KubeClient
    events: EventWriter
    now: Callable[[], datetime]
    differing: tuple[str, ...] = ()
    """Pods whose annotations could not be set right the last time, and why."""
    _full: frozenset[str] = field(default=frozenset(), init=False)
    """UIDs of the pods without room for the annotations, which have an Event about it."""
    _due_events: list[PodEvent] = field(default_factory=list, init=False)
    _planned: Memo[Sequence[Repair]] = field(default_factory=Memo, init=False)
    _planner: RepairPlanner = field(default_factory=RepairPlanner, init=False)

    def plan(self, assignments: NodeAssignments | None) -> Sequence[Repair]:
        """Returns the repairs that are due; the same ones again while only the time has changed."""
        if assignments is None:
            return ()
        dialect = self.state.last_dialect or self.state.offering.dialect
        pods = dict(self.state.pods)
        return self._planned.value(
            (assignments, pods, dialect),
            lambda _: self._planner.plan(assignments, pods.values(), dialect, now=self.now()),
        )

    async def repair(self, assignments: NodeAssignments | None) -> None:
        """Writes what is due. A pod whose annotations cannot be set right keeps no other one waiting."""
        repairs = self.plan(assignments)
        try:
            problems = [(repair.pod, repair.obstacle or await self._write(repair)) for repair in repairs]
        except UnreachableError as error:  # nor would it answer for the others, and each waits for seconds
            _log.warning("cannot correct annotations: %s", error)
            silence = "the API server does not answer"
            problems = [(repair.pod, repair.obstacle or silence) for repair in repairs]
        self.differing = tuple(f"{pod} ({problem})" for pod, problem in problems if problem)
        written = (repair for repair, (_, problem) in zip(repairs, problems, strict=True) if not problem)
        # One Event for a full pod: its name keeps a restarted plugin from writing it again.
        full = frozenset(repair.uid for repair in repairs if repair.obstacle)
        fresh, self._full = full - self._full, full
        about_full = full_pod_events(repair for repair in repairs if repair.uid in fresh)
        self._due_events += [*other_card_events(written), *about_full]

    async def write_events(self) -> None:
        """Writes what people are to be told of the repairs; no other write of a round has to wait for it."""
        due, self._due_events = self._due_events, []
        await self.events.write(due)

    async def _write(self, repair: Repair) -> str:
        """Returns why it has to be tried again, or an empty text. Raises ``UnreachableError``."""
        body = {"metadata": {"uid": repair.uid, "annotations": dict(repair.annotations)}}
        try:
            written = await self.client.merge(pod_path(*repair.pod), body)
        except ApiError as error:
            _log.warning("cannot correct an annotation: %s", error, extra={"pod": str(repair.pod)})
            return "" if error.is_not_found or error.is_conflict else str(error)
        message = "annotations now agree with the kubelet's records: %s"
        _log.info(message, dict(repair.annotations), extra={"pod": str(repair.pod)})
        if repair.pod in self.state.pods:
            self.state.put_pod(read_metadata(written, Dialect.allocation_annotation))
        return ""
