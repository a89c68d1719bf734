"""Writes repaired annotations, and says of which pods they could not be written."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.held.pods import read_metadata
from gpushare_plugin.decide.report.annotation_repairs import (
    Repair,
    full_pod_events,
    other_card_events,
)
from gpushare_plugin.state import NodeState

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class AnnotationWriter:
    """What is written goes into ``state`` at once."""

    state: NodeState
    client: KubeClient
    events: EventWriter
    differing: tuple[str, ...] = ()
    """Pods whose annotations could not be set right the last time, and why."""
    _full: frozenset[str] = field(default=frozenset(), init=False)
    """UIDs of those that have no room for it, which were told so."""

    async def write(self, repairs: Sequence[Repair]) -> None:
        """One pod whose annotations cannot be set right keeps no other one waiting."""
        try:
            problems = [(repair.pod, repair.obstacle or await self._apply(repair)) for repair in repairs]
        except UnreachableError as error:  # nor would it answer for the others, and each waits for seconds
            _log.warning("cannot set annotations right: %s", error)
            silence = "the API server does not answer"
            problems = [(repair.pod, repair.obstacle or silence) for repair in repairs]
        self.differing = tuple(f"{pod} ({problem})" for pod, problem in problems if problem)
        written = (repair for repair, (_, problem) in zip(repairs, problems, strict=True) if not problem)
        await self.events.write(other_card_events(written))
        await self._tell_full_pods(repairs)

    async def _tell_full_pods(self, repairs: Sequence[Repair]) -> None:
        """Once, as long as it is so. The name of the Event keeps a restarted plugin from telling it again."""
        full = frozenset(repair.uid for repair in repairs if repair.obstacle)
        fresh, self._full = full - self._full, full
        await self.events.write(full_pod_events(repair for repair in repairs if repair.uid in fresh))

    async def _apply(self, repair: Repair) -> str:
        """Returns why it has to be tried again, or an empty text. Raises ``UnreachableError``."""
        body = {"metadata": {"uid": repair.uid, "annotations": dict(repair.annotations)}}
        try:
            written = await self.client.merge(pod_path(*repair.pod), body)
        except ApiError as error:
            _log.warning("cannot set an annotation right: %s", error, extra={"pod": str(repair.pod)})
            return "" if error.is_not_found or error.is_conflict else str(error)
        message = "annotations now say what the kubelet's books say: %s"
        _log.info(message, dict(repair.annotations), extra={"pod": str(repair.pod)})
        if repair.pod in self.state.pods:
            self.state.put_pod(read_metadata(written, Dialect.allocation_annotation))
        return ""
