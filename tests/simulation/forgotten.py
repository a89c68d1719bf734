"""What is different by right while a kubelet does not know what its containers run with, and nothing else.

Two pictures of a node are audited. By its books as they are the auditor names every container whose units
were forgotten, and no other one. By the books as they would be had the kubelet not forgotten, nothing is
different: nobody else has those units, and annotations, status and ledger have them all along.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tests.fakes.books import Given
from tests.simulation.known_pod import KnownPod
from tests.simulation.kubelet import SimulatedKubelet

from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.readers import read_environment
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    ListedContainer,
    NodeRecords,
    PodKey,
    StoredContainer,
)
from gpushare_core.audit.unit_map import Block, UnitMap, unit_map
from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.decide.units.unit_ids import known_numbers

Container = tuple[str, str]
"""Pod (``namespace/name``) and container."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What one kubelet has forgotten of pods that run."""

    running: frozenset[Container]
    """Containers that run without its knowledge of their units."""
    ended: frozenset[Container]
    """Containers that do not run with theirs any more, and were given none again. And ordinary init
    containers of a pod of which nothing else is left: the auditor does not believe the checkpoint of a pod
    that PodResources show without units."""
    lending: frozenset[Container]
    """All ordinary init containers of these pods."""


def forgotten_by(kubelet: SimulatedKubelet) -> Forgotten:
    pods = [pod for pod in kubelet.pods.values() if pod.is_running and (pod.forgotten() or pod.lacking())]
    every = {_name(pod, name) for pod in pods for name in pod.forgotten()}
    down = {_name(pod, name) for pod in pods for name in pod.lacking()}
    inits = {_name(pod, name) for pod in pods for name in pod.request.init_containers}
    down |= {_name(pod, name) for pod in pods if not _is_shown(pod) for name in pod.request.init_containers}
    return Forgotten(
        running=frozenset(every - inits),
        ended=frozenset(every & inits | down),
        lending=frozenset(inits),
    )


def _is_shown(pod: KnownPod) -> bool:
    return not pod.request.init_containers >= {*pod.forgotten(), *pod.held}


def _name(pod: KnownPod, container: str) -> Container:
    return "/".join(pod.name), container


def with_forgotten(books: NodeRecords, kubelet: SimulatedKubelet) -> NodeRecords:
    """Returns ``books`` as if the kubelet held what its containers run with; the same ones where it does."""
    units = unit_map(books.share_node)
    pods = [pod for pod in kubelet.pods.values() if pod.is_running and pod.forgotten()]
    if units is None or not pods:
        return books
    names, uids = {pod.name for pod in pods}, {pod.uid for pod in pods}
    listed = [resource for resource in books.resources or () if resource.key.pod[:2] not in names]
    stored = {key: each for key, each in (books.checkpoint or {}).items() if key.pod.uid not in uids}
    for pod in pods:
        for name, numbers in _Renumbered(pod, units).numbers().items():
            held = (HeldUnits(resource=f"of {pod.uid}", numbers=sorted(numbers)),)
            if name in pod.request.init_containers:
                stored[ContainerKey(PodKey("", "", pod.uid), name)] = StoredContainer(
                    units=held, response=None
                )
            else:
                listed.append(ListedContainer(key=ContainerKey(_key(books, pod), name), units=held))
    return replace(books, resources=listed, checkpoint=stored)


@dataclass(slots=True)
class _Renumbered:
    """The units of one pod, those of each card counted from its first one on: under a name of the pod's own
    nobody else has them. The kubelet may have given IDs that it forgot to others.

    Ordinary init containers that were admitted once more have units that the others have as well: they lend
    them, or have ended when those run on with what was forgotten.
    """

    pod: KnownPod
    units: UnitMap
    size: Counter[Block] = field(default_factory=Counter)
    places: dict[int, int] = field(default_factory=dict)
    """Number that the kubelet knows -> the one here."""

    def numbers(self) -> dict[str, list[int]]:
        inits, held = self.pod.request.init_containers, self.pod.held
        running = {name: each for name, each in self.pod.forgotten().items() if name not in inits}
        found = {name: [*self._forgotten(given)] for name, given in running.items()}
        lendable = [block.first + place for block, size in self.size.items() for place in range(size)]
        found |= {name: [*self._held(given, [])] for name, given in held.items() if name not in inits}
        return found | {
            name: [*self._held(given, [*lendable])] for name, given in held.items() if name in inits
        }

    def _forgotten(self, given: Iterable[Given]) -> Iterator[int]:
        for each in given:
            seen, resource = read_environment(each.variables), RESOURCES[each.resource]
            cards = seen.cards if seen else ()
            for block in self.units.blocks:
                if block.card in cards and block.resource is resource:
                    yield from (self._next(block) for _ in range(len(each.ids) // len(cards)))

    def _held(self, given: Iterable[Given], lendable: list[int]) -> Iterator[int]:
        for number in sorted(number for each in given for number in known_numbers(each.ids)):
            if number not in self.places and (block := self.units.block(number)):
                lent = next((each for each in lendable if self.units.block(each) == block), None)
                if lent is not None:
                    lendable.remove(lent)
                self.places[number] = self._next(block) if lent is None else lent
            yield self.places.get(number, number)

    def _next(self, block: Block) -> int:
        self.size[block] += 1
        return block.first + self.size[block] - 1


def _key(books: NodeRecords, pod: KnownPod) -> PodKey:
    """As the API server has it: another UID than the kubelet's for static pods."""
    known = (each.key for each in (books.pods or {}).values() if each.kubelet_uid == pod.uid)
    own = (each for each in known if each[:2] == pod.name)
    return next(own, PodKey(*pod.name, pod.uid))


def unexpected(found: Iterable[Difference], forgotten: Forgotten) -> Iterator[Difference]:
    """Yields those of ``found``, by the books as they are, that are not of what was forgotten.

    The checkpoint is not believed of a pod that PodResources show without any units.
    """
    for each in found:
        container = (each.pod, each.container)
        is_told = each.kind is DifferenceKind.FORGOTTEN_UNITS and container in forgotten.running
        is_gap = each.kind is DifferenceKind.SHARES_DIFFER and container in (
            forgotten.running | forgotten.ended | forgotten.lending
        )
        if not (is_told or is_gap):
            yield each


def unsaid(found: Iterable[Difference], forgotten: Forgotten, node: str) -> Iterator[Difference]:
    """Yields what was forgotten and is not among ``found``."""
    said = {(each.pod, each.container) for each in found if each.kind is DifferenceKind.FORGOTTEN_UNITS}
    for pod, container in sorted(forgotten.running - said):
        yield Difference(
            node=node,
            kind=DifferenceKind.FORGOTTEN_UNITS,
            pod=pod,
            container=container,
            sentence=f"the kubelet has forgotten the units of {pod} ({container}), and nobody says so",
        )


def still_different(
    found: Iterable[Difference], forgotten: Forgotten, books: NodeRecords
) -> Iterator[Difference]:
    """Yields those of ``found``, by the books as if nothing were forgotten, that are different by no right.

    What ordinary init containers had is not in these books: they have ended. Of a static pod that has no
    mirror the status may have the UID of its former one: nobody else tells it.
    """
    known = {str(pod.key) for pod in (books.pods or {}).values()}
    unnamed = {each for each in forgotten.running if each[0] not in known}
    for each in found:
        gaps = forgotten.ended | unnamed
        if each.kind is not DifferenceKind.SHARES_DIFFER or (each.pod, each.container) not in gaps:
            yield each
