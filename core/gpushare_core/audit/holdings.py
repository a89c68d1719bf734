"""What the kubelet holds for which container: PodResources and checkpoint, with the pods' names and UIDs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.audit.unit_map import Block, UnitMap, UnitNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One container that the kubelet holds units for."""

    key: ContainerKey
    """With the pod's UID of the API server, where it is known."""
    units: tuple[HeldUnits, ...]
    listed: bool
    """Whether PodResources list it: they never list ordinary init containers."""
    response: SeenCards | None = None
    """The plugin's response to the container's Allocate, by the checkpoint."""
    stored: tuple[HeldUnits, ...] | None = None
    """Its units by the checkpoint; None where the container is not in the checkpoint."""

    @property
    def foreign(self) -> bool:
        """Whether it has devices of a replaced system's plugin, which do not say their card."""
        return any(unit.foreign for unit in self.units)

    @property
    def is_stored(self) -> bool:
        return self.stored is not None or not self.listed

    @property
    def numbers(self) -> Sequence[int]:
        """In ascending order, as those of one resource are already."""
        if len(self.units) == 1:
            return self.units[0].numbers
        return sorted(number for unit in self.units for number in unit.numbers)

    def blocks(self, units: UnitMap) -> dict[Block, int]:
        """Returns the number of its units in each block, without units of no card."""
        return units.shares(self.numbers)

    def parts(self, units: UnitMap) -> Iterator[tuple[str, Block, Sequence[int]]]:
        """Yields extended resource, block and numbers of its units."""
        for unit in self.units:
            for block, numbers in units.by_block(unit.numbers).items():
                yield unit.resource, block, numbers


@dataclass(slots=True)
class DistinctUnits:
    """Units of several containers; a unit that containers lend to each other counts once.

    A number of two extended resources is two units: the kubelet has a list for each resource.
    """

    numbers: dict[str, UnitNumbers] = field(default_factory=dict)
    """By the name of the extended resource."""
    pods: set[str] = field(default_factory=set)

    def add(self, holding: Holding, name: str, numbers: Sequence[int]) -> None:
        self.numbers.setdefault(name, UnitNumbers()).add(numbers)
        self.pods.add(str(holding.key.pod))

    @property
    def count(self) -> int:
        return sum(map(len, self.numbers.values()))


def distinct_numbers(units: Iterable[HeldUnits]) -> Sequence[int]:
    """Returns the numbers of all ``units``, ascending and distinct."""
    every = [unit.numbers for unit in units]
    return every[0] if len(every) == 1 else sorted({*chain.from_iterable(every)})


def shares_of(blocks: Mapping[Block, int]) -> dict[str, int]:
    """Returns card UUID -> units."""
    shares: dict[str, int] = {}
    for block, units in blocks.items():
        shares[block.card] = shares.get(block.card, 0) + units
    return shares


def holdings(records: NodeRecords) -> list[Holding]:
    """Returns what the kubelet holds for every container; nothing where neither of its books was read.

    The checkpoint may have pods that have ended since it was written: a pod that is in no other book is left
    out.
    """
    names = _PodNames.of(records)
    stored = records.checkpoint or {}
    found: list[Holding] = []
    seen: set[ContainerKey] = set()
    for resource in records.resources or ():
        key = names.key_of(resource)
        seen.add(key)
        answer = stored.get(names.stored_key(key))
        response, units = (answer.response, answer.units) if answer else (None, None)
        found.append(Holding(key=key, units=resource.units, listed=True, response=response, stored=units))
    listed = {key.pod.uid for key in seen}
    return [*found, *_stored_only(records, names, seen, listed)]


def _stored_only(
    records: NodeRecords, names: "_PodNames", seen: set[ContainerKey], listed: set[str]
) -> Iterator[Holding]:
    for key, container in (records.checkpoint or {}).items():
        known = names.of_kubelet_uid.get(key.pod.uid)
        if known is None or ContainerKey(known, key.container) in seen:
            continue
        if records.resources is None or known.uid in listed or _all_are_unlisted(records, known):
            yield Holding(
                key=ContainerKey(known, key.container),
                units=container.units,
                listed=False,
                response=container.response,
            )


def _all_are_unlisted(records: NodeRecords, pod: PodKey) -> bool:
    """Whether only ordinary init containers of ``pod`` have units, which PodResources do not list."""
    known = (records.pods or {}).get(pod.uid)
    if known is None or known.ended or known.request is None:
        return False
    return not known.request.running_containers


def stored_of(records: NodeRecords, pod: PodRecord) -> dict[str, StoredContainer]:
    """Returns what the checkpoint has of ``pod``, by container; nothing for a pod that only claims to be the
    mirror of another one."""
    uid = pod.kubelet_uid or pod.key.uid
    if _PodNames.of(records).of_kubelet_uid.get(uid) != pod.key:
        return {}
    stored = (records.checkpoint or {}).items()
    return {key.container: container for key, container in stored if key.pod.uid == uid}


def kubelet_uids(records: NodeRecords) -> dict[str, str]:
    """Returns API server's UID -> kubelet's UID."""
    return {pod.key.uid: pod.kubelet_uid or pod.key.uid for pod in (records.pods or {}).values()}


@dataclass(frozen=True, slots=True)
class _PodNames:
    """Which pods the kubelet's books mean."""

    of_kubelet_uid: Mapping[str, PodKey]
    by_name: Mapping[tuple[str, str], PodKey]
    stored_uids: Mapping[tuple[str, int, int], str]
    """Container, its lowest unit and number of units -> UID in the checkpoint."""
    kubelet_uids: Mapping[str, str]
    """API server's UID -> kubelet's UID."""

    @classmethod
    def of(cls, records: NodeRecords) -> "_PodNames":
        pods = [*(records.pods or {}).values()]
        cards = records.share_node.cards if records.share_node else ()
        reported = [holder.key.pod for card in cards for holder in card.holders]
        stored = {
            (key.container, units.numbers[0], len(units.numbers)): key.pod.uid
            for key, container in (records.checkpoint or {}).items()
            for units in container.units
            if units.numbers
        }
        listed = _listed_names(records, stored)
        own = {
            uid: pod.key
            for pod in _by_trust(records)
            if not pod.ended and (uid := pod.kubelet_uid or pod.key.uid)
            if uid == pod.key.uid or pod.key[:2] in listed.get(uid, {pod.key[:2]})
        }
        return cls(
            of_kubelet_uid={**{key.uid: key for key in reported if key.uid}, **own},
            by_name={key[:2]: key for key in (*reported, *(pod.key for pod in pods))},
            stored_uids=stored,
            kubelet_uids=kubelet_uids(records),
        )

    def key_of(self, listed: ListedContainer) -> ContainerKey:
        """Returns the container with its pod's UID, the first that applies:

        1. the UID in the list;
        2. the UID in the checkpoint of a container with the same units;
        3. the UID of the pod of that name: the last resort, for names are used again.
        """
        pod = listed.key.pod
        if pod.uid:
            return listed.key
        for uid in _matching(listed, self.stored_uids):
            known = self.of_kubelet_uid.get(uid, PodKey(pod.namespace, pod.name, uid))
            return ContainerKey(known, listed.key.container)
        known = self.by_name.get(pod[:2], pod)
        return ContainerKey(known, listed.key.container)

    def stored_key(self, key: ContainerKey) -> ContainerKey:
        uid = self.kubelet_uids.get(key.pod.uid, key.pod.uid)
        return ContainerKey(PodKey("", "", uid), key.container)


def _by_trust(records: NodeRecords) -> list[PodRecord]:
    """Returns the pods, the most trustworthy last.

    Any author can annotate a pod as the mirror of another one; the kubelet does not list such a pod.
    """
    listed = {resource.key.pod[:2] for resource in records.resources or ()}

    def trust(pod: PodRecord) -> tuple[bool, bool]:
        is_mirror = pod.kubelet_uid not in ("", pod.key.uid)
        return not is_mirror, pod.key[:2] in listed

    return sorted((records.pods or {}).values(), key=trust)


def _listed_names(
    records: NodeRecords, uids: Mapping[tuple[str, int, int], str]
) -> dict[str, set[tuple[str, str]]]:
    """Returns UID in the checkpoint -> the names under which PodResources list its units.

    The true mirror of that pod has that name, too.
    """
    found: dict[str, set[tuple[str, str]]] = {}
    for resource in records.resources or ():
        for uid in _matching(resource, uids):
            found.setdefault(uid, set()).add(resource.key.pod[:2])
    return found


def _matching(listed: ListedContainer, uids: Mapping[tuple[str, int, int], str]) -> Sequence[str]:
    keys = (
        (listed.key.container, unit.numbers[0], len(unit.numbers)) for unit in listed.units if unit.numbers
    )
    return [uids[key] for key in keys if key in uids]
