"""What was decided of each pod, as long as all that it follows from is as it was.

A node has a hundred pods, one is admitted after the other, and each time all others are as before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.assigned_devices import NodeAssignments
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.decide.held.preferred_cards import PreferredCard

T = TypeVar("T")


class PodInputs(NamedTuple):
    """All that is known of one pod."""

    pod: Pod
    listed: PodAssignment | None
    """By the pod's name: it may be another pod's."""
    stored: tuple[tuple[str, CheckpointEntry], ...]
    forgotten: PodAllocation | None
    forgotten_beside: tuple[Mapping[str, ResourceClass], bool] | None
    """What equal ones may differ in: classes, and whether the record alone tells it."""
    preferred: PreferredCard | None

    @classmethod
    def of(cls, pod: Pod, assignments: NodeAssignments) -> "PodInputs":
        assigned = assignments.assigned
        forgotten = assigned.forgotten.get(pod.name)
        return cls(
            pod,
            listed=assigned.pods.get(pod.name),
            stored=tuple(assigned.stored_of(pod).items()),
            forgotten=forgotten,
            forgotten_beside=(forgotten.classes, forgotten.recorded) if forgotten else None,
            preferred=assignments.preferred.get(pod.uid),
        )


@dataclass(slots=True)
class PodAnswers(Generic[T]):
    """Answers of a pure function that are remembered for each pod."""

    _beside: tuple[object, ...] = ()
    _known: dict[PodName, tuple[PodInputs, T]] = field(default_factory=dict)

    def of(
        self,
        pods: Iterable[Pod],
        assignments: NodeAssignments,
        *,
        beside: tuple[object, ...] = (),
        decide: Callable[[Pod], T],
        settled: Callable[[T], bool] = lambda _: True,
    ) -> list[T]:
        """Returns what ``decide`` says of each of ``pods``. It may look at ``PodInputs``, the node, the
        layout, and what ``beside`` has, and at nothing else.

        ``settled``: whether an answer may be remembered.
        """
        beside = (assignments.node, assignments.layout, *beside)
        before = self._known if beside == self._beside else {}
        asked = [*self._asked(pods, assignments, before, decide)]
        self._beside = beside
        self._known = {given.pod.name: (given, answer) for given, answer in asked if settled(answer)}
        return [answer for _, answer in asked]

    @staticmethod
    def _asked(
        pods: Iterable[Pod],
        assignments: NodeAssignments,
        before: dict[PodName, tuple[PodInputs, T]],
        decide: Callable[[Pod], T],
    ) -> Iterator[tuple[PodInputs, T]]:
        for pod in pods:
            given, known = PodInputs.of(pod, assignments), before.get(pod.name)
            yield known if known and known[0] == given else (given, decide(pod))
