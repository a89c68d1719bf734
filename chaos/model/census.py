"""Every pod of the namespace that was ever seen, and what must be true of all of them at the end.

A watch fills it: the API server keeps no deleted pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from chaos.operation import Operation
from chaos.operations.forgeries import CreateForged, ForgeCard
from chaos.operations.pods import (
    BindByOther,
    CreateBurst,
    CreateOnNode,
    CreatePod,
    DeletePod,
    EvictPod,
    ForceDeletePod,
    RecreatePod,
)
from gpushare_core.text.json_object import Json

CREATIONS = (BindByOther, CreateForged, CreateOnNode, CreatePod, ForgeCard)
REMOVALS = (DeletePod, EvictPod, ForceDeletePod, RecreatePod)

ENOUGH = 20
"""Pods, from which on it can be told."""
LEAST_RUN = 0.3
"""Share of the pods on nodes that has to run at some time."""


@dataclass(slots=True)
class Census:
    """Pods by name. A long history has tens of thousands; of deleted pods little is kept."""

    present: dict[str, Json] = field(default_factory=dict)
    excused: dict[str, bool] = field(default_factory=dict)
    """Deleted pods -> whether the last state that was seen says who ended them."""
    seen: set[str] = field(default_factory=set)
    """Those that came to a node."""
    ran: set[str] = field(default_factory=set)

    def see(self, pod: Json) -> None:
        name = pod["metadata"]["name"]
        self.present[name] = pod
        if pod.get("spec", {}).get("nodeName"):
            self.seen.add(name)
        if pod.get("status", {}).get("phase") in ("Running", "Succeeded"):
            self.ran.add(name)

    def lose(self, pod: Json) -> None:
        name = pod["metadata"]["name"]
        self.present.pop(name, None)
        self.excused[name] = is_excused(pod)

    def listed(self, pods: Iterable[Json]) -> None:
        """What is not in the list is gone, unseen."""
        names = {pod["metadata"]["name"]: pod for pod in pods}
        for name in self.present.keys() - names.keys():
            self.excused[name] = is_excused(self.present[name])
        self.present = {}
        for pod in names.values():
            self.see(pod)


def lost_pods(census: Census, operations: Iterable[tuple[Operation, bool]]) -> Iterator[str]:
    """Yields a sentence for every pod that was created and not deleted, and that does not exist.
    ``operations``: each with whether the API server confirmed it."""
    for name in sorted(_expected(operations) - census.present.keys()):
        if not census.excused.get(name):
            yield f"pod {name} was created, nobody deleted it, and it is gone without a reason"


def _expected(operations: Iterable[tuple[Operation, bool]]) -> set[str]:
    """Names that were created and never used again: a pod that was to be deleted may be gone, even after a
    failed request."""
    made, removed = set[str](), set[str]()
    for operation, done in operations:
        if isinstance(operation, REMOVALS):
            removed.add(operation.name)
        elif done and isinstance(operation, CREATIONS):
            made.add(operation.name)
        elif done and isinstance(operation, CreateBurst):
            made.update(operation.names)
    return made - removed


def idle_cluster(census: Census) -> str:
    """Returns a sentence where hardly a pod that came to a node ever ran; "" otherwise.

    Kubelets refuse pods now and then, such as those that are bound past the scheduler. Where they refuse
    nearly all, every book agrees that no pod has anything.
    """
    seen, ran = len(census.seen), len(census.ran)
    if seen < ENOUGH or ran >= LEAST_RUN * seen:
        return ""
    return f"of {seen} pods that came to a node only {ran} ever ran: see why their kubelets refuse them"


def is_excused(pod: Json | None) -> bool:
    """Whether the last that was seen of a pod says who ended it: ``DisruptionTarget`` of preemption, eviction
    or the taint manager."""
    conditions: Iterable[Mapping[str, str]] = (pod or {}).get("status", {}).get("conditions") or ()
    return any(condition["type"] == "DisruptionTarget" for condition in conditions)
