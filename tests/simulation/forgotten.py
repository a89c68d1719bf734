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
    """Containers that no longer run with their units and were given none again; and ordinary init containers
    of a pod of which nothing else is left, because the auditor does not believe the checkpoint of a pod that
    PodResources show without units."""
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
    stored = {key: stored for key, stored in (books.checkpoint or {}).items() if key.pod.uid not in uids}
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
    """The units of one pod, counted on each card from its first one on. Their names are the pod's own,
    because the kubelet may have given the forgotten IDs to other pods.

    Ordinary init containers that were admitted again have units that the other containers have as well: they
    lend them, or they have ended when the others run on with forgotten units.
    """

    pod: KnownPod
    units: UnitMap
    size: Counter[Block] = field(default_factory=Counter)
    places: dict[int, int] = field(default_factory=dict)
    """Number that the kubelet knows -> the one here."""

    def numbers(self) -> dict[str, list[int]]:
        inits, held = self.pod.request.init_containers, self.pod.held
        running = {name: units for name, units in self.pod.forgotten().items() if name not in inits}
        found = {name: [*self._forgotten(given)] for name, given in running.items()}
        lendable = [block.first + place for block, size in self.size.items() for place in range(size)]
        found |= {name: [*self._held(given, [])] for name, given in held.items() if name not in inits}
        return found | {
            name: [*self._held(given, [*lendable])] for name, given in held.items() if name in inits
        }

    def _forgotten(self, given: Iterable[Given]) -> Iterator[int]:
        for grant in given:
            seen, resource = read_environment(grant.variables), RESOURCES[grant.resource]
            cards = seen.cards if seen else ()
            for block in self.units.blocks:
                if block.card in cards and block.resource is resource:
                    yield from (self._next(block) for _ in range(len(grant.ids) // len(cards)))

    def _held(self, given: Iterable[Given], lendable: list[int]) -> Iterator[int]:
        for number in sorted(number for grant in given for number in known_numbers(grant.ids)):
            if number not in self.places and (block := self.units.block(number)):
                lent = next((number for number in lendable if self.units.block(number) == block), None)
                if lent is not None:
                    lendable.remove(lent)
                self.places[number] = self._next(block) if lent is None else lent
            yield self.places.get(number, number)

    def _next(self, block: Block) -> int:
        self.size[block] += 1
        return block.first + self.size[block] - 1


def _key(books: NodeRecords, pod: KnownPod) -> PodKey:
    """As the API server has it: another UID than the kubelet's for static pods."""
    known = (present.key for present in (books.pods or {}).values() if present.kubelet_uid == pod.uid)
    own = (key for key in known if key[:2] == pod.name)
    return next(own, PodKey(*pod.name, pod.uid))


def unexpected(found: Iterable[Difference], forgotten: Forgotten) -> Iterator[Difference]:
    """Yields the differences in ``found``, by the real books, that do not come from forgotten units. The
    checkpoint of a pod that PodResources show without units is not believed."""
    for difference in found:
        container = (difference.pod, difference.container)
        is_told = difference.kind is DifferenceKind.FORGOTTEN_UNITS and container in forgotten.running
        is_gap = difference.kind is DifferenceKind.SHARES_DIFFER and container in (
            forgotten.running | forgotten.ended | forgotten.lending
        )
        if not (is_told or is_gap):
            yield difference


def unsaid(found: Iterable[Difference], forgotten: Forgotten, node: str) -> Iterator[Difference]:
    """Yields what was forgotten and is not among ``found``."""
    said = {
        (difference.pod, difference.container)
        for difference in found
        if difference.kind is DifferenceKind.FORGOTTEN_UNITS
    }
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
    """Yields the unjustified differences in ``found``, by the books as if nothing were forgotten.

    These books have no units of ordinary init containers, which have ended. For a static pod without mirror
    the status may have the UID of its former one, because nothing else names it.
    """
    known = {str(pod.key) for pod in (books.pods or {}).values()}
    unnamed = {container for container in forgotten.running if container[0] not in known}
    for difference in found:
        gaps = forgotten.ended | unnamed
        if (
            difference.kind is not DifferenceKind.SHARES_DIFFER
            or (difference.pod, difference.container) not in gaps
        ):
            yield difference
