"""Every pod of the namespace that was ever seen, and what must be true of all of them at the end.

Filled by a watch: the API server keeps no pod that is gone.
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
from gpushare_core.json_object import Json

CREATIONS = (BindByOther, CreateForged, CreateOnNode, CreatePod, ForgeCard)
REMOVALS = (DeletePod, EvictPod, ForceDeletePod, RecreatePod)


@dataclass(slots=True)
class Census:
    """Pods by name: those that are there, and how those looked that are gone."""

    present: dict[str, Json] = field(default_factory=dict)
    gone: dict[str, Json] = field(default_factory=dict)

    def see(self, pod: Json) -> None:
        self.present[pod["metadata"]["name"]] = pod

    def lose(self, pod: Json) -> None:
        name = pod["metadata"]["name"]
        self.present.pop(name, None)
        self.gone[name] = pod

    def listed(self, pods: Iterable[Json]) -> None:
        """What is not in the list is gone, unseen."""
        names = {pod["metadata"]["name"]: pod for pod in pods}
        for name in self.present.keys() - names.keys():
            self.gone[name] = self.present[name]
        self.present = names


def lost_pods(census: Census, operations: Iterable[tuple[Operation, bool]]) -> Iterator[str]:
    """Yields a sentence for every pod that was made, that nobody asked to remove, and that is not there.

    ``operations``: each with whether the API server answered that it was done.
    """
    for name in sorted(_expected(operations) - census.present.keys()):
        if not is_excused(census.gone.get(name)):
            yield f"pod {name} was created, nobody deleted it, and it is gone without a reason"


def _expected(operations: Iterable[tuple[Operation, bool]]) -> set[str]:
    """Names that were made and never touched again: whoever is removed, by a call that failed too, may go."""
    made, removed = set[str](), set[str]()
    for operation, done in operations:
        if isinstance(operation, REMOVALS):
            removed.add(operation.name)
        elif done and isinstance(operation, CREATIONS):
            made.add(operation.name)
        elif done and isinstance(operation, CreateBurst):
            made.update(operation.names)
    return made - removed


def is_excused(pod: Json | None) -> bool:
    """Whether the last that was seen of a pod says who ended it: ``DisruptionTarget`` of preemption, eviction
    or the taint manager."""
    conditions: Iterable[Mapping[str, str]] = (pod or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "DisruptionTarget" for each in conditions)
